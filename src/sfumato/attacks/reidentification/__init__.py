"""Re-identification: which of the known candidates is behind a released record?"""
