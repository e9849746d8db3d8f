// The whole loop of one agent on one Gaussian problem with quadratic features: a trial to a thread.
//
// What limits a compiled scan on a GPU is memory: the root of the belief is moved several times a round. Here
// a belief stays in registers (one scale) or in the thread's own memory (several), and random numbers are made
// where they are used. In front of this text stand, for one problem and one agent (cuda.py):
//   real, FN, TABLE, THREADS, IN_SHARED, and the names of functions: what differs between a GPU and a host
//   D, ARMS, SCALES     dimensions, arms, beliefs about theta side by side (one for `Conjugate`)
//   SCALED, RANDUCB     1 for these learners and choosers, 0 for `Conjugate` and `Thompson`
//   GIVEN, SEES, PRIVILEGED, DECOMPOSE, LIMITED       1 or 0
//   TIE, REWARD_VAR, LIMIT, TRUST, LEVEL, TAIL, GROWTH, PATIENCE, and the arrays MEAN, ..., START
//
// With `real` double and a C++ compiler for the host it is held against the NumPy engine on the same draws.

#define M (3 * D)
#define NT (M * (M + 1) / 2)  // a lower triangle, by rows: N. A. Carlson, Fast triangular formulation of the
#define AT(i, j) ((i) * ((i) + 1) / 2 + (j))  // square root filter
#define SYM(i, j) ((j) <= (i) ? AT(i, j) : AT(j, i))
#define LOSSES (DECOMPOSE ? 7 : 1)
#define VIEWS (DECOMPOSE ? 4 : 1)
#define WORLD (2 * D + 1)
#define CHOICE (RANDUCB ? 2 : M)
#define ROW (D + 3 * D * D)  // of the schedule
// Of arms that are equal but for rounding the first is taken: agents/choose/greedy.py. Scores are without what
// all arms share, and are looked at once: of arms in a chain of near ties it may be another one.
#define ABOVE(score, top) ((score) > (top) + TIE * ((top) < 0 ? -(top) : (top)))
// Triangular loops have constant bounds and a condition: what is unrolled stays in registers. Three loops in
// each other are too much for that, and are spelled out by templates.
#define EACH _Pragma("unroll") for
#if SCALED
#define STATE _Pragma("unroll 1") for  // several scales are no registers
#define EACH_ARM _Pragma("unroll 1") for
#else
#define STATE EACH
#define EACH_ARM _Pragma("unroll 2") for
#endif

FN real dot(const real *x, const real *y, int n) {
  real total = 0;
  EACH (int i = 0; i < n; ++i) total += x[i] * y[i];
  return total;
}

// out = start + matrix x, all of size D
FN void affine(real *out, const real *start, const real *matrix, const real *x) {
  EACH (int i = 0; i < D; ++i) out[i] = start[i] + dot(matrix + i * D, x, D);
}

// Threefry-2x32 and Box and Muller, as in jax.py: number for number in double precision. SINCOS takes
// turns.
FN void threefry(unsigned k0, unsigned k1, unsigned &a, unsigned &b) {
  const unsigned keys[3] = {k0, k1, k0 ^ k1 ^ 0x1BD11BDAu};
  const int turns[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  a += keys[0];
  b += keys[1];
  EACH (int block = 0; block < 5; ++block) {
    EACH (int i = 0; i < 4; ++i) {
      const int turn = turns[block % 2][i];
      a += b;
      b = ((b << turn) | (b >> (32 - turn))) ^ a;
    }
    a += keys[(block + 1) % 3];
    b += keys[(block + 2) % 3] + (unsigned)(block + 1);
  }
}

FN void normals(real *out, int count, unsigned k0, unsigned k1, unsigned number) {
  const int pairs = (count + 1) / 2;
  EACH (int i = 0; i < pairs; ++i) {
    unsigned a = number, b = (unsigned)i;
    threefry(k0, k1, a, b);
    const real near = ((real)a + (real)0.5) * (real)2.3283064365386963e-10;
    const real far = ((real)b + (real)0.5) * (real)2.3283064365386963e-10;
    const real radius = SQRT(MAX((real)0, -2 * ROUGH_LOG(near)));  // rough: of 1 it may be above 0
    real s, c;
    SINCOS(far, &s, &c);
    out[i] = radius * c;
    if (pairs + i < count) out[pairs + i] = radius * s;
  }
}

// root'x of a lower triangular root
FN void halves(real *half, const real *root, const real *x) {
  EACH (int j = 0; j < M; ++j) {
    real total = 0;
    EACH (int i = 0; i < M; ++i) if (i >= j) total += root[AT(i, j)] * x[i];
    half[j] = total;
  }
}

// The belief after value = x'w + N(0, variance), by Carlson's update
FN void condition(real *root, real *mean, const real *x, real value, real variance, const real *half) {
  real gain[M], before = variance;
  EACH (int i = 0; i < M; ++i) gain[i] = 0;
  EACH (int back = 0; back < M; ++back) {
    const int j = M - 1 - back;
    const real after = before + half[j] * half[j], joint = RSQRT(before * after);
    const real shrink = before * joint, push = half[j] * joint;
    EACH (int i = 0; i < M; ++i) if (i >= j) {
      const real old = root[AT(i, j)];
      root[AT(i, j)] = old * shrink - gain[i] * push;
      gain[i] += old * half[j];
    }
    before = after;
  }
  const real step = (value - dot(x, mean, M)) / before;
  EACH (int i = 0; i < M; ++i) mean[i] += gain[i] * step;
}

// A root, put in the place of noise root root' of it: from the last entry to the first, none is needed again
template <int I, int J> FN void squared(real *root, real noise) {
  real total = 0;
  EACH (int k = 0; k <= J; ++k) total += root[AT(I, k)] * root[AT(J, k)];
  root[AT(I, J)] = noise * total;
  if constexpr (J > 0) squared<I, J - 1>(root, noise);
  else if constexpr (I > 0) squared<I - 1, I - 1>(root, noise);
}

// E[theta'Cov(phi)theta] of an arm (QuadraticDesign.context_variance) is flat + pull'arm + a form in the arm and
// its slope. C is the covariance of the context; sums run over one half of what is symmetric.
FN real veil(real *pull, const real *own, const real *C, const real *mean, const real *cov) {
  real flat = 0;
  EACH (int i = 0; i < D; ++i) {
    pull[i] = 0;
    EACH (int j = 0; j < D; ++j) {
      pull[i] += 4 * C[i * D + j] * own[j] * cov[SYM(2 * D + i, D + j)];
      const real squares = cov[SYM(D + i, D + j)], c = C[i * D + j];
      if (j <= i)
        flat += (j < i ? 2 : 1) * c * (4 * own[i] * own[j] * squares + 2 * c * (mean[D + i] * mean[D + j] + squares));
    }
  }
  return flat;
}

FN real hidden(
    real flat, const real *pull, const real *arm, const real *own, const real *C, const real *mean, const real *cov
) {
  real slope[D], total = flat + dot(pull, arm, D);
  EACH (int i = 0; i < D; ++i) slope[i] = arm[i] * mean[2 * D + i] + 2 * own[i] * mean[D + i];
  EACH (int i = 0; i < D; ++i)
    EACH (int j = 0; j < D; ++j) if (j <= i)
      total += (j < i ? 2 : 1) * C[i * D + j] * (slope[i] * slope[j] + arm[i] * arm[j] * cov[SYM(2 * D + i, 2 * D + j)]);
  return total;
}

FN real noise_of(real noise, real more) { return SCALED ? noise * (1 + more / REWARD_VAR) : REWARD_VAR + more; }

// u = (a^2, a own): what of the expected features differs between arms
FN void lifted(real *u, const real *arm, const real *own) {
  EACH (int i = 0; i < D; ++i) {
    u[i] = arm[i] * arm[i];
    u[D + i] = arm[i] * own[i];
  }
}

// A line in (a^2, a)
FN real along(const real *arm, const real *line) {
  real total = 0;
  EACH (int i = 0; i < D; ++i) total += arm[i] * (arm[i] * line[i] + line[D + i]);
  return total;
}

#define PLACE(i) ((i) < D ? (i) : (i) + D)  // of an entry of u among the features

// The variance of an arm's score: u'F u + 2 f'u + e
FN real variance_of(const real *u, const real *cov, const real *linear, real constant) {
  real total = constant;
  EACH (int i = 0; i < 2 * D; ++i) {
    real inner = linear[i];
    EACH (int j = 0; j < 2 * D; ++j) if (j < i) inner += cov[AT(PLACE(i), PLACE(j))] * u[j];
    total += u[i] * (cov[AT(PLACE(i), PLACE(i))] * u[i] + 2 * inner);
  }
  return total;
}

struct Belief {
  real root[SCALES * NT], mean[SCALES * M], rates[SCALES], weights[SCALES];
  int best;  // the most probable scale
};

// One more reward at every scale (learn/scaled.py), or at the one there is
FN void learn(Belief &own, const real *x, real reward, real more, real shape) {
  if (!SCALED) {
    real half[M];
    halves(half, own.root, x);
    condition(own.root, own.mean, x, reward, REWARD_VAR, half);
    return;
  }
  const real relative = 1 + more / REWARD_VAR;
  real top = 0;
  _Pragma("unroll 1") for (int s = 0; s < SCALES; ++s) {
    real root[NT], mean[M], half[M];
    EACH (int i = 0; i < NT; ++i) root[i] = own.root[s * NT + i];
    EACH (int i = 0; i < M; ++i) mean[i] = own.mean[s * M + i];
    halves(half, root, x);
    const real total = relative + dot(half, half, M), error = reward - dot(x, mean, M);
    const real square = error * error / (2 * total), rate = own.rates[s];
    condition(root, mean, x, reward, relative, half);
    EACH (int i = 0; i < NT; ++i) own.root[s * NT + i] = root[i];
    EACH (int i = 0; i < M; ++i) own.mean[s * M + i] = mean[i];
    const real weight =
        own.weights[s] - (real)0.5 * LOG(total * rate) - (shape + (real)0.5) * LOG1P(square / rate);
    own.rates[s] = rate + square;
    own.weights[s] = weight;
    if (s == 0 || weight > top) {
      top = weight;
      own.best = s;
    }
  }
}

FN void add(real *lost, real *carry, real loss) {  // Kahan's summation
  const real term = loss - *carry, sum = *lost + term;
  *carry = (sum - *lost) - term;
  *lost = sum;
}

struct Arguments {
  const real *actions, *theta, *bias;  // (ARMS D, n), (M, n), (D, n)
  const real *world, *choices;  // GIVEN: (rounds, WORLD, n), (rounds, CHOICE, n); else keys, (2, n) words
  const real *schedule;  // (rounds, ROW): offset, covariance, gains on the reading and on the total
  const int *slots;  // (rounds): where totals are stored, or -1
  real *root, *mean, *rates, *weights, *total, *lost, *carry;  // (..., n) each, read and written
  real *stored;  // (slots, LOSSES, n)
};

// `shared` holds the actions of a block of trials, where IN_SHARED, with this trial in the given lane
FN void one_trial(const Arguments &g, int trial, int n, int rounds, int first, const real *shared, int lane) {
#define OF(array, i) array[(long long)(i) * n + trial]
#define ACTION(i) (IN_SHARED ? shared[(i) * THREADS + lane] : OF(g.actions, i))
  Belief own;
  own.best = 0;
  real total[D], lost[LOSSES], carry[LOSSES];
  EACH (int i = 0; i < D; ++i) total[i] = OF(g.total, i);
  EACH (int i = 0; i < LOSSES; ++i) lost[i] = OF(g.lost, i), carry[i] = OF(g.carry, i);
  STATE (int i = 0; i < SCALES * NT; ++i) own.root[i] = OF(g.root, i);
  STATE (int i = 0; i < SCALES * M; ++i) own.mean[i] = OF(g.mean, i);
  EACH (int s = 0; s < SCALES; ++s) {
    own.rates[s] = OF(g.rates, s), own.weights[s] = OF(g.weights, s);
    if (SCALED && own.weights[s] > own.weights[own.best]) own.best = s;
  }
  _Pragma("unroll 1") for (int t = 0; t < rounds; ++t) {
    const int number = first + t;
    const real *row = g.schedule + (long long)t * ROW, *C = row + D;
    const real shape = TRUST / 2 + (real)0.5 * number;
    real z[WORLD], choice[CHOICE], context[D], noisy[D], clean[D], mu[D], square[D], best[D];
    if (GIVEN) {
      EACH (int i = 0; i < WORLD; ++i) z[i] = OF(g.world, (long long)t * WORLD + i);
      EACH (int i = 0; i < CHOICE; ++i) choice[i] = OF(g.choices, (long long)t * CHOICE + i);
    } else {
      const unsigned *world = (const unsigned *)g.world, *choices = (const unsigned *)g.choices;
      normals(z, WORLD, OF(world, 0), OF(world, 1), number);
      normals(choice, CHOICE, OF(choices, 0), OF(choices, 1), number);
    }
    affine(context, MEAN, CONTEXT_ROOT, z);
    affine(noisy, context, NOISE_ROOT, z + D);
    EACH (int i = 0; i < D; ++i) clean[i] = noisy[i], noisy[i] += OF(g.bias, i);
    affine(mu, row, row + D + D * D, PRIVILEGED ? clean : noisy);
    affine(mu, mu, row + D + 2 * D * D, total);
    EACH (int i = 0; i < D; ++i) square[i] = mu[i] * mu[i] + C[i * D + i];
    affine(best, CENTRE, GAIN, clean);

    // What is believed of theta, as lines and forms in u
    const real *root = own.root + (SCALED ? own.best * NT : 0);
    const real *mean = own.mean + (SCALED ? own.best * M : 0);
    const real noise = SCALED ? own.rates[own.best] / shape : 1;
    real line[2 * D], cov[NT], linear[2 * D], constant = 0, level = 0, neglect = 0, u[2 * D];
    if (RANDUCB || SCALED) {
      EACH (int i = 0; i < NT; ++i) cov[i] = root[i];
      squared<M - 1, M - 1>(cov, noise);
    }
    real pull[D], flat = 0;
    if ((RANDUCB || SCALED) && !SEES) flat = veil(pull, mu, C, mean, cov);
    if (RANDUCB) {
      EACH (int i = 0; i < 2 * D; ++i) {
        line[i] = mean[PLACE(i)] * (i < D ? 1 : mu[i % D]);
        linear[i] = 0;
        EACH (int j = 0; j < D; ++j) linear[i] += cov[SYM(PLACE(i), D + j)] * square[j];
      }
      EACH (int i = 0; i < D; ++i)
        EACH (int j = 0; j < D; ++j) constant += square[i] * square[j] * cov[SYM(D + i, D + j)];
      level = LEVEL * EXP((choice[0] * choice[0] + choice[1] * choice[1]) / (2 * TAIL));
      if (GROWTH > 0) {
        real likely[D], top = 0;
        _Pragma("unroll 4") for (int a = 0; a < ARMS; ++a) {
          real arm[D];
          EACH (int i = 0; i < D; ++i) arm[i] = ACTION(a * D + i);
          const real score = along(arm, line);
          if (a == 0 || ABOVE(score, top)) {
            top = score;
            EACH (int i = 0; i < D; ++i) likely[i] = arm[i];
          }
        }
        const real more = SEES ? 0 : hidden(flat, pull, likely, mu, C, mean, cov);
        neglect = (number + 1) * (ARMS / PATIENCE) / noise_of(noise, more);
      }
    } else {
      const real spread = SCALED ? SQRT(noise) : 1;
      EACH (int i = 0; i < 2 * D; ++i) {
        real drawn = 0;
        EACH (int j = 0; j < M; ++j) if (j <= PLACE(i)) drawn += root[AT(PLACE(i), j)] * choice[j];
        line[i] = (mean[PLACE(i)] + spread * drawn) * (i < D ? 1 : mu[i % D]);
      }
    }

    // The arms: which one is taken, and what each view of the context says of the best and of the taken one
    real theta[M], arm[D], top = 0, slope[VIEWS][D], most[VIEWS], picked[VIEWS], beside = 0;
    EACH (int i = 0; i < M; ++i) theta[i] = OF(g.theta, i);
    EACH (int i = 0; i < D; ++i) {
      slope[0][i] = best[i] * theta[2 * D + i];
      if (DECOMPOSE) {
        slope[VIEWS > 1 ? 1 : 0][i] = context[i] * theta[2 * D + i];
        slope[VIEWS > 2 ? 2 : 0][i] = noisy[i] * theta[2 * D + i];
        slope[VIEWS > 3 ? 3 : 0][i] = mu[i] * theta[2 * D + i];
      }
    }
    EACH_ARM (int a = 0; a < ARMS; ++a) {
      real now[D], value[VIEWS];
      EACH (int i = 0; i < D; ++i) now[i] = ACTION(a * D + i);
      real score = along(now, line);
      if (RANDUCB) {
        lifted(u, now, mu);
        real width = MAX(variance_of(u, cov, linear, constant), (real)0);
        if (GROWTH > 0) width *= 1 + GROWTH * ROUGH_LOG(1 + neglect * width);
        score += level * SQRT(width);
      }
      const bool better = a == 0 || ABOVE(score, top);
      if (better) {
        top = score;
        EACH (int i = 0; i < D; ++i) arm[i] = now[i];
      }
      EACH (int v = 0; v < VIEWS; ++v) {
        value[v] = 0;
        EACH (int i = 0; i < D; ++i) value[v] += now[i] * (now[i] * theta[i] + slope[v][i]);
      }
      if (DECOMPOSE && (a == 0 || value[0] > most[0])) beside = value[VIEWS > 1 ? 1 : 0];
      EACH (int v = 0; v < VIEWS; ++v) {
        most[v] = a == 0 ? value[v] : MAX(most[v], value[v]);
        if (better) picked[v] = value[v];
      }
    }

    // The reward, and what it teaches
    real x[M], reward = SQRT(REWARD_VAR) * z[2 * D], more = 0;
    EACH (int i = 0; i < D; ++i) {
      reward += arm[i] * arm[i] * theta[i] + context[i] * context[i] * theta[D + i]
                + arm[i] * context[i] * theta[2 * D + i];
      x[i] = arm[i] * arm[i];
      x[D + i] = SEES ? context[i] * context[i] : square[i];
      x[2 * D + i] = arm[i] * (SEES ? context[i] : mu[i]);
    }
    if ((RANDUCB || SCALED) && !SEES) more = hidden(flat, pull, arm, mu, C, mean, cov);
    if (LIMITED) {
      real spread = 0;  // x'cov x
      if (RANDUCB || SCALED) {
        EACH (int i = 0; i < M; ++i) {
          real inner = (real)0.5 * cov[AT(i, i)] * x[i];
          EACH (int j = 0; j < M; ++j) if (j < i) inner += cov[AT(i, j)] * x[j];
          spread += 2 * x[i] * inner;
        }
      } else {
        real half[M];
        halves(half, root, x);
        spread = dot(half, half, M);
      }
      const real expected = dot(x, mean, M);
      const real reach = LIMIT * SQRT(noise_of(noise, more) + MAX(spread, (real)0));
      reward = MAX(expected - reach, reward < expected + reach ? reward : expected + reach);
    }
    learn(own, x, reward, more, shape);

    real added[D], shared = 0;
    affine(added, START, ON_NOISY, noisy);
    affine(added, added, ON_CONTEXT, context);
    EACH (int i = 0; i < D; ++i) total[i] += added[i];
    add(lost, carry, most[0] - picked[0]);
    if (DECOMPOSE) {
      const int own_view = VIEWS - 1, last = LOSSES - 1;
      EACH (int i = 0; i < D; ++i) shared += (best[i] * best[i] + LEFT[i] - square[i]) * theta[D + i];
      EACH (int v = 1; v < VIEWS - 1; ++v) add(lost + v, carry + v, most[v] - picked[v]);
      add(lost + last - 3, carry + last - 3, beside - picked[VIEWS > 1 ? 1 : 0]);
      add(lost + last - 2, carry + last - 2, most[own_view] - picked[own_view]);
      add(lost + last - 1, carry + last - 1, most[0] - most[own_view] + shared);
      add(lost + last, carry + last, picked[own_view] - picked[0] - shared);
    }
    const int slot = g.slots[t];
    if (slot >= 0) EACH (int i = 0; i < LOSSES; ++i) OF(g.stored, (long long)slot * LOSSES + i) = lost[i];
  }
  EACH (int i = 0; i < D; ++i) OF(g.total, i) = total[i];
  EACH (int i = 0; i < LOSSES; ++i) OF(g.lost, i) = lost[i], OF(g.carry, i) = carry[i];
  STATE (int i = 0; i < SCALES * NT; ++i) OF(g.root, i) = own.root[i];
  STATE (int i = 0; i < SCALES * M; ++i) OF(g.mean, i) = own.mean[i];
  EACH (int s = 0; s < SCALES; ++s) OF(g.rates, s) = own.rates[s], OF(g.weights, s) = own.weights[s];
#undef ACTION
#undef OF
}
