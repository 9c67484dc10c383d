"""What the name of a table's column says about it: people's names, codes, survey weights, body weight."""

from __future__ import annotations

import re

_IDS = frozenset(
    {
        "id", "ids", "uid", "uuid", "guid", "person", "patient", "user", "subject", "client", "customer", "member",
        "employee", "student", "participant", "respondent", "household", "email", "mail", "passport", "account", "ssn",
        "mrn", "nhs", "iban", "phone", "telephone", "mobile", "fax", "surname", "lastname", "firstname", "fullname",
        "caseno", "index", "ip",
    }
)  # fmt: skip
_ENDINGS = frozenset({"id", "no", "nr", "nbr", "num", "name", "number", "key", "code", "hash"})
_ID_PARTS = tuple(sorted(one for one in _IDS if len(one) > 3))
_CODES = frozenset(
    {
        "zip", "zipcode", "postcode", "postal", "plz", "fips", "puma", "naics", "sic", "soc", "nace", "isco", "icd",
        "icd9", "icd10", "atc", "drg", "ops", "cpt", "snomed", "loinc", "code", "codes", "cd", "race", "rac1p", "sex",
        "gender", "state", "region", "county", "country", "ward", "class", "category", "cat", "type", "status", "group",
    }
)  # fmt: skip
_WEIGHTS = re.compile(
    r"^(p|w|h|hh|person|house(hold)?)?(wgtp?|wtp|wt|perwt|hhwt|asecwt|fnlwgt|finalwt|weightvar)\d{0,3}$"
)
_SURVEY = frozenset(
    {
        "survey", "sample", "sampling", "final", "design", "replicate", "rep", "analysis", "population", "pop", "hh",
        "household", "housing", "calibrated", "calibration", "poststratification", "post", "strat", "expansion",
        "probability", "stat", "statistical",
    }
)  # fmt: skip


def words_of(column: str) -> list[str]:
    """The words of a name, in lower case: ``patientNo``, ``patient_no`` and ``PATIENT-NO`` are patient and no."""
    parts = re.sub(r"([a-z])([A-Z])", r"\1 \2", column)
    return [word.lower() for word in re.split(r"[^A-Za-z0-9]+", parts) if word]


def names_people(column: str) -> bool:
    """Whether the name is that of an id: patient, person_id, customerNumber, e-mail; not employee_age."""
    words = words_of(column)
    if not words:
        return False
    last = words[-1]
    if last in _IDS:
        return True
    before = words[-2] if len(words) > 1 else next((p for p in _ID_PARTS if last.startswith(p) and last != p), "")
    ending = last if len(words) > 1 else last.removeprefix(before)
    return (before in _IDS and ending in _ENDINGS) or (len(words) > 1 and last == "id")


def names_code(column: str) -> bool:
    """Whether the name is that of a code, whose size means nothing: zip, ICD, region, anything that ends in code."""
    words = words_of(column)
    return bool(words) and (words[-1] in _CODES or words[0] in {"zip", "icd", "icd9", "icd10", "fips", "naics", "puma"})


def names_weight(column: str) -> bool:
    """Whether the name is that of a survey weight: PWGTP, fnlwgt, sample_weight."""
    words = words_of(column)
    if not words:
        return False
    if _WEIGHTS.match("".join(words)):
        return True
    return len(words) > 1 and words[-1] in {"weight", "weights", "wt", "wgt"} and bool(_SURVEY & set(words[:-1]))


def may_be_weight(column: str) -> bool:
    """Whether the name is ``weight`` and no more, which a survey and a doctor both write."""
    return words_of(column) in (["weight"], ["weights"])
