"""What holds of every figure."""

from matplotlib.figure import Figure

SLACK = 0.01  # inches


def inside(chart: Figure) -> bool:
    """Whether everything that is drawn, texts and legends among it, is within the figure."""
    chart.draw_without_rendering()
    box = chart.get_tightbbox()
    wide, high = chart.get_size_inches()
    return bool(min(box.x0, box.y0) > -SLACK and box.x1 < wide + SLACK and box.y1 < high + SLACK)
