"""CbAS: its weights by hand, its conditional in closed form, and the VAE and the oracle underneath."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch

from diffbbo import Categorical, Integer, Real, Sequence, Space
from diffbbo.autoencoder import VAE, Layout, fit
from diffbbo.baselines.cbas import CbAS, Oracle, log_weights, normal_scores, ranked
from diffbbo.encoding import Encoder
from diffbbo.registry import make_optimizer
from diffbbo.testing import check_optimizer
from diffbbo.types import InputError, row_keys

SMALL = {
    "samples": 20, "iterations": 2, "epochs": 2, "members": 4, "hidden": 16, "latent": 4,
    "vae_steps": 20, "oracle_steps": 20,
}  # fmt: skip
WORD = Space((Sequence("word", 3, "ABC"),))
MIXED = Space(
    (Real("t", 20, 120), Sequence("dna", 3, "ACGT"), Integer("n", 1, 9), Categorical("c", ("x", "y")),
     Categorical("d", (1, 2)))
)  # fmt: skip


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def vae_of(space: Space, latent: int = 4, hidden: int = 16) -> tuple[Encoder, VAE]:
    encoder = Encoder.fit(space, space.sample(200, np.random.default_rng(0)))
    return encoder, VAE.init(Layout.of(encoder, torch.float64), latent, hidden, generator())


# ---- the method ------------------------------------------------------------------------------------


def test_the_name_is_the_method() -> None:
    assert type(make_optimizer("cbas", WORD)) is CbAS


def test_conformance() -> None:
    check_optimizer("cbas", told=40, batch=6, **SMALL)


@pytest.mark.parametrize("batch", [1, 1000])
def test_batches_of_one_and_of_a_thousand(batch: int) -> None:
    space = Space((Sequence("dna", 6, "ACGT"),))
    optimizer = CbAS(space, **SMALL)
    x = space.unrank(np.arange(0, 4096, 41))
    optimizer.tell(x, x.sum(axis=1))
    assert len(set(row_keys(optimizer.ask(batch).x))) == batch


@pytest.mark.parametrize(
    "settings", [{"quantile": 1.5}, {"members": 0}, {"weighting": "rwr"}], ids=["quantile", "members", "weighting"]
)
def test_bad_settings_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(InputError, match=next(iter(settings))):
        CbAS(WORD, **settings)  # type: ignore[arg-type]


def test_weights_by_hand() -> None:
    """Three designs: p_0 / p_t is 5/2, 1 and 2/5; P(y >= 1) is Phi(-1), Phi(0) and Phi(1)."""
    p0, pt = (torch.tensor(p, dtype=torch.float64) for p in ([0.5, 0.3, 0.2], [0.2, 0.3, 0.5]))
    mean, std = torch.tensor([0.0, 1.0, 2.0], dtype=torch.float64), torch.ones(3, dtype=torch.float64)
    survival = np.array([0.1586552539, 0.5, 0.8413447461])
    weights = {kind: log_weights(p0.log(), pt.log(), mean, std, 1.0, kind).exp().numpy() for kind in ("cbas", "dbas")}
    np.testing.assert_allclose(weights["cbas"], survival * [2.5, 1.0, 0.4], rtol=1e-9)
    np.testing.assert_allclose(weights["dbas"], survival, rtol=1e-9)
    assert log_weights(p0.log(), pt.log(), mean, std, 1.0, "none").tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("pt", [[0.2, 0.3, 0.5], [0.8, 0.1, 0.1]])
def test_weighted_maximum_likelihood_is_the_conditional_from_any_model(pt: list[float]) -> None:
    """Over all distributions on three designs the fit is p_t w, normalised: p(x | S) = p_0 P(S | x) / Z by Bayes."""
    p0, model, mean, std = torch.tensor([[0.5, 0.3, 0.2], pt, [0.0, 1.0, 2.0], [1.0, 1.0, 1.0]], dtype=torch.float64)
    w = log_weights(p0.log(), model.log(), mean, std, 1.0).exp()
    fitted = model * w / (model * w).sum()
    joint = np.array([0.5 * 0.1586552539, 0.3 * 0.5, 0.2 * 0.8413447461])
    np.testing.assert_allclose(fitted.numpy(), joint / joint.sum(), rtol=1e-9)


def test_a_rare_event_of_one_number_in_closed_form() -> None:
    """Prior N(0, 1), oracle N(x, 1/2), goal y >= 4, a normal as model: x given the goal has mean 3.421, spread 0.494.

    Exact by the moments of a truncated normal. 40 of 10,000 draws hold about half the weight, so the mean of one
    iteration has a standard error near 0.01 and the tolerance is beyond 5 of them.
    """
    rng = np.random.default_rng(0)
    mu, sigma, gamma = 0.0, 1.0, -np.inf
    for _ in range(30):
        x = torch.as_tensor(rng.normal(mu, sigma, 10_000))
        gamma = min(max(gamma, float(x.quantile(0.9))), 4.0)
        logs = [torch.distributions.Normal(*at).log_prob(x) for at in ((0.0, 1.0), (mu, sigma))]
        w = log_weights(*logs, x, torch.full_like(x, 0.5), gamma).softmax(dim=0)
        mu = float(w @ x)
        sigma = float((w @ (x - mu) ** 2).sqrt())
    assert gamma == 4.0
    assert mu == pytest.approx(3.421, abs=0.06) and sigma == pytest.approx(0.494, abs=0.06)


def trained() -> tuple[Encoder, Oracle, VAE, CbAS]:
    x = WORD.unrank(np.arange(27))
    optimizer = CbAS(WORD, **SMALL | {"iterations": 4}, weighting="none")
    encoder = Encoder.fit(WORD, x)
    u = torch.as_tensor(encoder.encode(x), dtype=torch.float32)
    oracle = Oracle.fit(u, x.sum(axis=1), optimizer.sizes, generator(1))
    return encoder, oracle, VAE.init(Layout.of(encoder), 4, 16, generator(2)), optimizer


def test_without_weights_it_is_plain_maximum_likelihood_step_by_step() -> None:
    encoder, oracle, prior, optimizer = trained()
    model, plain = prior.copy(), prior.copy()
    ours, theirs = generator(3), generator(3)
    for step in optimizer.condition(prior, model, encoder, oracle, ours):
        # `model` is as it was when it drew the step: compare before the plain one moves on.
        assert all(torch.equal(a, b) for a, b in zip(model.weights, plain.weights, strict=True))
        u = plain.sample(torch.randn((20, 4), generator=theirs), theirs)
        np.testing.assert_array_equal(step.x, encoder.decode(u.double().numpy()))
        assert step.effective == pytest.approx(20)
        fit(plain, u, torch.ones(20), steps=2 * 2, batch=10, generator=theirs)
    assert all(torch.equal(a, b) for a, b in zip(model.weights, plain.weights, strict=True))


def test_the_threshold_never_falls_and_is_the_quantile_at_first() -> None:
    encoder, oracle, prior, _ = trained()
    for quantile in (0.5, 1.0):
        optimizer = CbAS(WORD, **SMALL | {"iterations": 6}, quantile=quantile)
        steps = list(optimizer.condition(prior, prior.copy(), encoder, oracle, generator()))
        assert steps[0].gamma == pytest.approx(np.quantile(steps[0].mean, quantile), rel=1e-5)
        running = np.maximum.accumulate([np.quantile(step.mean, quantile) for step in steps])
        np.testing.assert_allclose([step.gamma for step in steps], running, rtol=1e-5)


def test_batches_rise_above_poor_start_data() -> None:
    """Words scored by agreement with a hidden one; the start data hold nothing above the median."""
    space = Space((Sequence("dna", 8, "ACGT"),))
    rng = np.random.default_rng(0)
    hidden = space.sample(1, rng)

    def value(x: np.ndarray) -> np.ndarray:
        return (x == hidden).sum(axis=1) + 0.5 * (x[:, :1] == hidden[:, :1])[:, 0] * (x[:, 1] == hidden[:, 1])

    x = space.sample(600, rng)
    poor = value(x) <= np.median(value(x))
    optimizer = CbAS(space, samples=50, iterations=10, epochs=5, members=5, vae_steps=200, oracle_steps=300)
    optimizer.tell(x[poor], value(x[poor]))
    means = []
    for _ in range(3):
        asked = optimizer.ask(30)
        optimizer.tell(asked, value(asked.x))
        means.append(value(asked.x).mean())
    start = value(x[poor])
    assert means[0] > start.mean() + 1 and means[2] > start.max() + 0.5, (means, start.mean(), start.max())


def test_ranked_by_the_oracle_without_repeats() -> None:
    x = WORD.unrank(np.array([3, 1, 3, 2]))
    assert WORD.rank(ranked(x, np.array([0.1, 0.7, 0.9, 0.5]))).tolist() == [3, 1, 2]


# ---- the oracle ------------------------------------------------------------------------------------


def test_normal_scores_by_hand() -> None:
    """Four values, two of them tied: shares 1/8, 7/8, 1/2, 1/2, whose normal quantiles are -+1.150349 and 0."""
    scores = normal_scores(np.array([10.0, 30.0, 20.0, 20.0])).numpy()
    np.testing.assert_allclose(scores, [-1.15034938, 1.15034938, 0.0, 0.0], atol=1e-7)
    y = np.random.default_rng(0).normal(size=50)
    np.testing.assert_array_equal(normal_scores(y), normal_scores(np.exp(3 * y)))


def test_the_ensemble_is_its_members() -> None:
    """Each slice of the member axis is a network of its own; together they are an equal mixture of normals."""
    _, oracle, _, _ = trained()
    u = torch.randn((7, 9), generator=generator())
    singles = [Oracle([w[m : m + 1] for w in oracle.weights]).predict(u) for m in range(4)]
    mean = torch.stack([m for m, _ in singles])
    variance = torch.stack([s**2 for _, s in singles])
    together = oracle.predict(u)
    torch.testing.assert_close(together[0], mean.mean(dim=0))
    torch.testing.assert_close(together[1] ** 2, (variance + mean**2).mean(dim=0) - mean.mean(dim=0) ** 2)


def test_the_oracle_learns_an_order() -> None:
    rng = np.random.default_rng(0)
    u = torch.as_tensor(rng.normal(size=(400, 5)), dtype=torch.float32)
    y = u.numpy() @ np.array([1.0, -2.0, 0.5, 0.0, 3.0])
    sizes = {"members": 5, "hidden": 20, "oracle_steps": 400}
    mean, _ = Oracle.fit(u[:300], y[:300], sizes, generator()).predict(u[300:])
    ranks = [np.argsort(np.argsort(values)) for values in (mean.numpy(), y[300:])]
    assert np.corrcoef(*ranks)[0, 1] > 0.95


# ---- the VAE ---------------------------------------------------------------------------------------


def test_neighbouring_letters_of_one_alphabet_size_are_one_block() -> None:
    """t | 3 letters of 4 | n | c and d of 2 values each: features 0, 1-12, 13, 14-17."""
    layout = Layout.of(vae_of(MIXED)[0])
    assert layout.numbers.tolist() == [0, 13]
    assert layout.blocks == ((1, 3, 4), (14, 2, 2))
    assert (layout.features, layout.tokens, layout.freedom) == (18, 7, 2 + 3 * 3 + 2)


def test_probabilities_of_all_words_add_up_to_one() -> None:
    encoder, vae = vae_of(WORD)
    words = np.array(list(product(range(3), repeat=3)), dtype=np.float64)
    u = torch.as_tensor(encoder.encode(words))
    z = torch.randn((1, 4), generator=generator(), dtype=torch.float64).expand(27, 4)
    assert float(vae.log_likelihood(u, vae.layout.one_hot(u), z).exp().sum()) == pytest.approx(1, abs=1e-12)


def test_a_number_has_the_density_of_a_normal() -> None:
    encoder, vae = vae_of(Space((Real("a", 0, 1), Real("b", -5, 5))))
    u = torch.randn((6, 2), generator=generator(), dtype=torch.float64)
    z = torch.randn((6, 4), generator=generator(1), dtype=torch.float64)
    exact = torch.distributions.Normal(vae.decode(z), vae.spread).log_prob(u).sum(dim=1)
    torch.testing.assert_close(vae.log_likelihood(u, torch.zeros_like(u), z), exact)
    assert encoder.features == 2


def test_samples_have_the_probabilities_of_the_decoder() -> None:
    """20,000 draws at one z: counts of 27 words within 5 standard errors (false alarm below 27 * 6e-7)."""
    encoder, vae = vae_of(WORD)
    z = torch.randn((1, 4), generator=generator(), dtype=torch.float64)
    words = torch.as_tensor(encoder.encode(WORD.unrank(np.arange(27))))
    p = vae.log_likelihood(words, vae.layout.one_hot(words), z.expand(27, 4)).exp().numpy()
    u = vae.sample(z.expand(20_000, 4), generator(1))
    share = np.bincount(WORD.rank(encoder.decode(u.numpy())), minlength=27) / 20_000
    assert (np.abs(share - p) < 5 * np.sqrt(p * (1 - p) / 20_000)).all()


def test_settled_features_are_those_of_their_design() -> None:
    encoder, vae = vae_of(Space((Sequence("dna", 5, "ACGT"), Categorical("c", ("x", "y", "z")))))
    for u in (vae.mode(torch.randn((20, 4)).double()), vae.sample(torch.randn((20, 4)).double(), generator())):
        np.testing.assert_allclose(encoder.encode(encoder.decode(u.numpy())), u.numpy(), atol=1e-6)


def test_a_weight_of_zero_is_a_design_left_out() -> None:
    encoder, vae = vae_of(WORD)
    rows = WORD.unrank(np.array([0, 26] * 20))
    u = torch.as_tensor(encoder.encode(rows))
    fit(vae, u, torch.tensor([2.0, 0.0] * 20).double(), steps=400, batch=10, generator=generator(), rate=0.01)
    drawn = vae.sample(torch.randn((200, 4), generator=generator(1), dtype=torch.float64), generator(2))
    assert (WORD.rank(encoder.decode(drawn.numpy())) == 0).mean() > 0.9


def test_no_global_seed_is_touched() -> None:
    optimizer = CbAS(WORD, **SMALL)
    x = WORD.unrank(np.arange(12))
    optimizer.tell(x, x.sum(axis=1))
    before = torch.random.get_rng_state()
    optimizer.ask(3)
    assert torch.equal(before, torch.random.get_rng_state())
