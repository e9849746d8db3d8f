"""When to use which agent: a line for each of the catalogue, in plain words.

A context is what the decision depends on; a reading is the context as the sensor shows it; the bias is how
far the sensor is off on average.
"""

WHEN = {
    "alg1": "To repeat the paper's Algorithm 1, or to compare with it. For your own decisions take unfog.",
    "alg2": "To repeat the paper's Algorithm 2, which is shown true contexts. Else take unfog-delayed.",
    "naive": "To see what it costs to take readings for the truth.",
    "oracle": "In simulations alone, to compare with: it is told the bias, which nobody knows in practice.",
    "kk": "To compare with: what is lost by not looking at readings at all.",
    "alg1-exact": "To see what exact denoising alone changes in alg1.",
    "alg2-exact": "To see what exact denoising alone changes in alg2.",
    "unfog": "Unless you have more to go by, or trouble of a known kind: this is the one to begin with.",
    "unfog-delayed": "When the true context of a round becomes known after its reward.",
    "unfog-oracle": "In simulations alone, beside unfog: what not knowing the bias costs.",
    "adaptive": "When you do not know your sensor well: how noisy it is, whether its bias moves, outliers.",
    "adaptive-delayed": "Like adaptive, when true contexts become known after rewards.",
    "coupled": "When rewards are plain numbers and you want them, too, to tell of the bias.",
    "gaps": "When some numbers of a reading get lost, and it is known which.",
    "late": "When true contexts come late, in any order, whole or in part.",
    "unknown-noise": "When the size of the noise is not known, and some true contexts become known.",
    "temporal": "When contexts move slowly and the sensor drifts; it wants to be calibrated with times.",
    "adaptive-temporal": "Like temporal, when the size of errors and the speed of the bias are not known.",
    "drift": "When the sensor's bias changes slowly over time.",
    "robust": "When some readings are far off: outliers.",
    "empirical": "When contexts are far from a bell curve and you have a sample of true ones.",
    "mixture": "When contexts are far from a bell curve and you have noisy ones to learn that from.",
    "bayes-oracle": "In simulations alone, where contexts are a sample: it is told that and the bias.",
}
