"""The one real data set that comes with the library, so that a plain install has something to try."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

# ItalyPowerDemand.npz holds the archive's official split, original values and labels: 67 + 1029 days of 24 hours.
FOLDER = Path(__file__).parent

# What the cards of these sets say beside what can be read from their files.
ABOUT: Mapping[str, Mapping[str, Any]] = {
    "ItalyPowerDemand": {
        "source": "https://timeseriesclassification.com/description.php?Dataset=ItalyPowerDemand",
        "licence": "none stated; the archive asks to be cited",
        "citation": "Keogh et al., Intelligent icons: integrating lite-weight data mining and visualization into GUI "
        "operating systems, ICDM 2006; Dau et al., The UCR time series archive, IEEE/CAA J. Autom. Sinica 6(6), 2019",
    }
}
