"""How many files a reader goes through who follows a fit, or `dicot embed`, from its beginning to its end."""

from tests.files_run import of_embed, of_fit

FIT, EMBED = 42, 63  # no more than these


def test_a_fit_and_an_embedding_run_through_few_files():
    for files, most in ((of_fit(), FIT), (of_embed(), EMBED)):
        assert 10 < len(files) <= most, "\n".join(files)
