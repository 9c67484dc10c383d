"""A hospital's table as hospitals have them: made-up people, real mess."""

from __future__ import annotations

from datetime import date, datetime, timedelta

import numpy as np

WORDS = [
    *("pain", "since", "days", "after", "fall", "left", "right", "knee", "cough"),
    *("fever", "none", "known", "allergic", "denies", "smoker", "walks", "daily"),
]
HEADER = (
    "record no", "patient_id", "name", "born", "admitted", "left at", "ward", "zip", "sex", "diagnosis", "weight_kg",
    "creatinine", "pain", "smoker", "children", "costs", "remarks", "sample_weight", "site", "readmitted",
)  # fmt: skip


def hospital_rows(count: int = 600, seed: int = 0) -> list[list[str]]:
    """Rows of text: days as 31.12.1960, moments with minutes, decimal commas, ``n/k``, gaps, codes, names, texts."""
    rng = np.random.default_rng(seed)
    patients = rng.integers(0, max(2, count // 2), count)
    rows = []
    for number, patient in enumerate(patients):
        one = np.random.default_rng([seed, int(patient)])
        sex = int(one.integers(1, 3))
        born = date(1930, 1, 1) + timedelta(days=int(one.integers(0, 27_000)))
        came = datetime(2021, 1, 1) + timedelta(minutes=int(rng.integers(0, 3 * 525_600)))
        age = (came.date() - born).days / 365.25
        kilos = 62 + 14 * (sex == 1) + float(one.normal(0, 11))
        creatinine = 0.7 + 0.2 * (sex == 1) + 0.006 * age + abs(float(rng.normal(0, 0.2)))
        again = rng.random() < 1 / (1 + np.exp(-(0.06 * (age - 60) + 2.0 * (creatinine - 1.3))))
        text = " ".join(rng.choice(WORDS, 11))
        rows.append(
            [
                str(number + 1),
                f"P{int(patient):05d}",
                f"{one.choice(list('ABCDEFGH'))}. {one.choice(['Meier', 'Müller', 'Şahin', 'Okafor'])}{int(patient)}",
                born.strftime("%d.%m.%Y"),
                came.strftime("%d.%m.%Y %H:%M"),
                (came + timedelta(hours=float(rng.exponential(70)))).strftime("%H:%M"),
                str(rng.choice(["3A", "3B", "ICU", "ER"])),
                f"{int(one.choice([1067, 4109, 10115, 20095, 50667, 80331])):05d}",
                str(sex),
                str(rng.choice(["I10", "E11.9", "J44.1", "N18.3", "S72.0"])),
                "n/k" if rng.random() < 0.04 else f"{kilos:.1f}".replace(".", ","),
                "" if rng.random() < 0.1 else f"{creatinine:.2f}".replace(".", ","),
                str(int(rng.integers(0, 11))),
                str(rng.choice(["yes", "no", "unknown"])),
                str(int(one.integers(0, 5))),
                f"{1000 + 9000 * rng.random():,.2f}".replace(",", "_").replace(".", ",").replace("_", "."),
                text,
                f"{rng.uniform(0.4, 3.0):.4f}".replace(".", ","),
                "main",
                "yes" if again else "no",
            ]
        )
    return rows


def hospital_text(count: int = 600, seed: int = 0, delimiter: str = ";") -> str:
    """The table as delimited text."""
    return "\n".join(delimiter.join(row) for row in [list(HEADER), *hospital_rows(count, seed)]) + "\n"
