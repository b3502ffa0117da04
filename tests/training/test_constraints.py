"""CCR and CCS against the paper's equations in plain loops, one pair at a time, in float64."""

import math

import pytest
import torch

from crossgaze.errors import InputError
from crossgaze.models.encoded import Attention, Encoded
from crossgaze.training.constraints import (
    ConstraintConfig,
    Swapped,
    constraint_terms,
    encode_swaps,
    weigh,
)
from crossgaze.training.swaps import Swaps
from model_parts import draw
from scoring_parts import MODELS, bfan, mmca, scan, side, sides, sum_max

COUNTS, LENGTHS, PLACES = [4, 1, 3, 6], [5, 3, 1, 4], [2, 0, 0, 3]
FOUND = [True, True, True, False]
BOTH = ConstraintConfig(ccr=1.0, ccs=1.0, ccr_margin=1.1, ccs_margin=0.5)
CASES = {
    "scan t-i AVG": lambda: scan(direction="t-i", pooling="AVG"),
    "scan t-i LSE": lambda: scan(direction="t-i", pooling="LSE"),
    "scan i-t AVG": lambda: scan(direction="i-t", pooling="AVG"),
    "scan i-t MAX": lambda: scan(direction="i-t", pooling="MAX"),
    "scan paper": lambda: scan(direction="t-i", pooling="SUM", feature_norm="paper"),
    "bfan equal": lambda: bfan(focal="equal", lambda1=6.0),
    "bfan prob": lambda: bfan(focal="prob"),
}


# The oracle: lists of numbers, nothing of the package ------------------------------------------


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def cos(a, b):
    lengths = math.sqrt(dot(a, a)) * math.sqrt(dot(b, b))
    return dot(a, b) / lengths if lengths > 1e-8 else 0.0


def mix(weights, vectors):
    return [dot(weights, column) for column in zip(*vectors, strict=True)]


def energies(query, keys, norm, sharpness):
    """e_ij of eq. 1, SCAN's f_att: e[i][j] of query i and key j."""
    raw = [[dot(q, k) for k in keys] for q in query]
    if norm == "paper":
        s = [[max(cos(q, k), 0.0) for k in keys] for q in query]
    else:
        s = [[x if x > 0 else 0.1 * x for x in row] for row in raw]
    for j in range(len(keys)):
        total = math.sqrt(sum(s[i][j] ** 2 for i in range(len(query))))
        total = max(total, 1e-8) if norm == "paper" else total + 1e-8
        for i in range(len(query)):
            s[i][j] = sharpness * s[i][j] / total
    return s


def softmax(row, group):
    total = sum(math.exp(row[j]) for j in group)
    return {j: math.exp(row[j]) / total for j in group}


def groups(row, focal):
    """G_att and G_ign of one query, from its energies."""
    w = softmax(row, range(len(row)))
    if focal is None:
        large = [j for j in w if w[j] > 1 / len(w) * (1 + 1e-5)]
        return large, [j for j in w if j not in large]
    trust = {j: 1.0 if focal == "equal" else math.sqrt(w[j]) for j in w}
    gain = {j: sum((w[j] - w[m]) * trust[m] for m in w) for j in w}
    base = sum(w[m] * trust[m] for m in w)
    if max(gain.values()) <= 1e-5 * base:
        return list(w), []
    return [j for j in w if gain[j] > 0], [j for j in w if gain[j] <= 0]


def aggregate(values, pooling, lambda2=6.0):
    if pooling == "LSE":
        return math.log(sum(math.exp(lambda2 * value) for value in values)) / lambda2
    if pooling == "MAX":
        return max(values)
    return sum(values) / (len(values) if pooling == "AVG" else 1)


def ccr(query, keys, how, margin):
    """Eqs. 5 and 6."""
    looked, ignored = [], []
    for q, row in zip(query, energies(query, keys, how["norm"], how["sharpness"]), strict=True):
        parts = groups(row, how["focal"])
        if not all(parts):
            continue
        for group, found in zip(parts, (looked, ignored), strict=True):
            weights = softmax(row, group)
            found.append(cos(q, mix(list(weights.values()), [keys[j] for j in weights])))
    if not looked:
        return 0.0
    gap = aggregate(ignored, how["pooling"]) - aggregate(looked, how["pooling"])
    return max(0.0, gap + margin)


def final_weights(row, focal):
    """w_ij as the model uses them."""
    kept = range(len(row)) if focal is None else groups(row, focal)[0]
    weights = softmax(row, kept)
    return [weights.get(j, 0.0) for j in range(len(row))]


def ccs(query, keys, how, place, other, turned, margin):
    """Eq. 8; with regions for queries, the swap is in what is attended to."""
    rows = energies(query, keys, how["norm"], how["sharpness"])
    weights = [final_weights(row, how["focal"]) for row in rows]
    if not turned:
        attended = mix(weights[place], keys)
        return max(0.0, cos(other, attended) - cos(query[place], attended) + margin)
    region = max(range(len(query)), key=lambda i: weights[i][place])
    if weights[region][place] == 0:
        return 0.0
    attended = mix(weights[region], keys)
    swapped = mix(weights[region], [other if j == place else k for j, k in enumerate(keys)])
    return max(0.0, cos(query[region], swapped) - cos(query[region], attended) + margin)


def by_loops(model, images, texts, swapped, config):
    c = model.config
    how = {
        "norm": getattr(c, "feature_norm", "clipped_l2norm"),
        "sharpness": c.lambda1,
        "focal": getattr(c, "focal", None),
        "pooling": getattr(c, "pooling", "AVG"),
    }
    ways = [c.direction] if hasattr(c, "direction") else ["t-i", "i-t"]
    total = {"ccr": 0.0, "ccs": 0.0}
    for p in range(len(images)):
        regions = images.fragments[p, : images.counts[p]].tolist()
        words = texts.fragments[p, : texts.counts[p]].tolist()
        place, other = (
            int(swapped.places[p]),
            swapped.texts.fragments[p, swapped.places[p]].tolist(),
        )
        for way in ways:
            query, keys = (words, regions) if way == "t-i" else (regions, words)
            total["ccr"] += ccr(query, keys, how, config.ccr_margin)
            if swapped.found[p]:
                total["ccs"] += ccs(query, keys, how, place, other, way == "i-t", config.ccs_margin)
    return total


def batch(seed=0, **options):
    images, texts = sides(COUNTS, LENGTHS, seed=seed, **options)
    swapped = Swapped(
        side(LENGTHS, seed=seed + 300, **options), torch.tensor(PLACES), torch.tensor(FOUND)
    )
    return images, texts, swapped


# The tests ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("seed", range(4))
def test_terms_equal_the_equations(name, seed):
    model = CASES[name]()
    images, texts, swapped = batch(seed)
    found = constraint_terms(model, images, texts, swapped, BOTH)
    wanted = by_loops(model, images, texts, swapped, BOTH)
    assert wanted["ccr"] > 0
    assert wanted["ccs"] > 0
    for term in ("ccr", "ccs"):
        assert float(found[term]) == pytest.approx(wanted[term], abs=1e-9)


def test_a_case_by_hand():
    """Two regions, two words; words look at regions."""
    model = scan(direction="t-i", pooling="AVG", feature_norm="no_norm", lambda1=2.0)
    regions = torch.tensor([[[1.0, 0.0, 0, 0, 0, 0], [0.0, 1.0, 0, 0, 0, 0]]], dtype=torch.float64)
    words = torch.tensor([[[0.8, 0.6, 0, 0, 0, 0], [0.0, 1.0, 0, 0, 0, 0]]], dtype=torch.float64)
    other = torch.tensor([[[9.0, 9.0, 0, 0, 0, 0], [1.0, 0.0, 0, 0, 0, 0]]], dtype=torch.float64)
    two = torch.tensor([2])
    swapped = Swapped(Encoded(None, other, two), torch.tensor([1]), torch.tensor([True]))
    config = ConstraintConfig(ccr=1, ccs=1, ccr_margin=0.7, ccs_margin=0.9)
    found = constraint_terms(
        model, Encoded(None, regions, two), Encoded(None, words, two), swapped, config
    )
    # Word 0 attends to region 0 (cosine 0.8) and ignores 1 (0.6); word 1 region 1 (1) and 0 (0).
    assert float(found["ccr"]) == pytest.approx((0.6 + 0.0) / 2 - (0.8 + 1.0) / 2 + 0.7)
    # Word 1 weighs the regions by e^0 : e^2; a = (1, e^2) / (1 + e^2), the other word is (1, 0).
    e2 = math.exp(2)
    assert float(found["ccs"]) == pytest.approx((1 - e2) / math.sqrt(1 + e2**2) + 0.9)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(
    "config", [ConstraintConfig(ccr=1.0, ccr_margin=4.0), ConstraintConfig(ccs=1.0, ccs_margin=0.5)]
)
def test_gradients_are_those_of_differences(name, config):
    model = CASES[name]()
    images, texts, swapped = batch(7, padding=0.0)

    def loss(regions, words, others):
        terms = constraint_terms(
            model,
            Encoded(None, regions, images.counts),
            Encoded(None, words, texts.counts),
            Swapped(Encoded(None, others, texts.counts), swapped.places, swapped.found),
            config,
        )
        return sum(terms.values())

    parts = [x.fragments.clone().requires_grad_() for x in (images, texts, swapped.texts)]
    loss(*parts).backward()
    assert parts[0].grad.abs().max() > 1e-4
    assert torch.autograd.gradcheck(loss, tuple(parts), eps=1e-7, atol=1e-5)


def wider(one):
    """The same side with more padding, all of it NaN."""
    x = torch.full(
        (len(one), one.fragments.shape[1] + 3, one.fragments.shape[2]), torch.nan
    ).double()
    for row, count in enumerate(one.counts.tolist()):
        x[row, :count] = one.fragments[row, :count]
    return Encoded(None, x, one.counts)


@pytest.mark.parametrize("name", CASES)
def test_padding_plays_no_part(name):
    model = CASES[name]()
    plain = batch(2, padding=0.0, more=0)
    odd = [wider(plain[0]), wider(plain[1])]
    odd.append(Swapped(wider(plain[2].texts), plain[2].places, plain[2].found))
    for one in (*plain[:2], *odd[:2]):
        one.fragments.requires_grad_()
    found = []
    for images, texts, swapped in (plain, odd):
        terms = constraint_terms(model, images, texts, swapped, BOTH)
        (terms["ccr"] + terms["ccs"]).backward()
        found.append((terms, images.fragments.grad, texts.fragments.grad))
    for term in ("ccr", "ccs"):
        torch.testing.assert_close(found[0][0][term], found[1][0][term])
    for one, two in zip(found[0][1:], found[1][1:], strict=True):
        torch.testing.assert_close(one, two[:, : one.shape[1]])
        assert not two[:, one.shape[1] :].any()


@pytest.mark.parametrize("name", CASES)
def test_pairs_do_not_know_each_other(name):
    model = CASES[name]()
    images, texts, swapped = batch(3)
    whole = constraint_terms(model, images, texts, swapped, BOTH)
    for term in ("ccr", "ccs"):
        parts = [
            constraint_terms(
                model,
                images[p],
                texts[p],
                Swapped(swapped.texts[p], swapped.places[p : p + 1], swapped.found[p : p + 1]),
                BOTH,
            )[term]
            for p in range(len(images))
        ]
        torch.testing.assert_close(whole[term], torch.stack(parts).sum())


def test_uniform_attention_adds_nothing_and_stays_finite():
    """Equal regions: nothing is attended to more than the rest."""
    for model in (scan(direction="t-i"), bfan()):
        images, texts = sides([4], [3], more=0)
        regions = images.fragments[:, :1].expand(-1, 4, -1).clone().requires_grad_()
        words = texts.fragments[:, :1].expand(-1, 3, -1).clone().requires_grad_()
        terms = constraint_terms(
            model,
            Encoded(None, regions, images.counts),
            Encoded(None, words, texts.counts),
            None,
            ConstraintConfig(ccr=1.0),
        )
        terms["ccr"].backward()
        assert terms["ccr"].item() == 0
        assert not regions.grad.any()


def test_ccr_moves_attention_towards_what_is_relevant():
    """A few steps on CCR alone raise the attended group's lead."""
    model = scan(direction="t-i", pooling="AVG")
    images, texts = sides([6] * 8, [5] * 8, more=0)
    regions = images.fragments.clone().requires_grad_()
    config = ConstraintConfig(ccr=1.0, ccr_margin=0.8)
    values = []
    for _ in range(20):
        loss = constraint_terms(model, Encoded(None, regions, images.counts), texts, None, config)[
            "ccr"
        ]
        (grad,) = torch.autograd.grad(loss, regions)
        regions = (regions - 0.1 * grad).detach().requires_grad_()
        values.append(loss.item())
    assert values[-1] < 0.7 * values[0]


def test_mean_divides_by_the_pairs():
    model = scan()
    images, texts, swapped = batch()
    total = constraint_terms(model, images, texts, swapped, BOTH)
    mean = constraint_terms(
        model, images, texts, swapped, ConstraintConfig(1, 1, 1.1, 0.5, mean=True)
    )
    for term in total:
        torch.testing.assert_close(mean[term], total[term] / 4)


def test_only_what_is_wanted_is_computed():
    images, texts, swapped = batch()
    assert constraint_terms(scan(), images, texts, swapped, ConstraintConfig()) == {}
    assert list(constraint_terms(scan(), images, texts, None, ConstraintConfig(ccr=2.0))) == ["ccr"]
    assert list(constraint_terms(scan(), images, texts, swapped, ConstraintConfig(ccs=2.0))) == [
        "ccs"
    ]


def test_the_whole_loss_weighs_the_terms():
    config = ConstraintConfig(ccr=0.5, ccs=3.0)
    terms = {"ccr": torch.tensor(4.0), "ccs": torch.tensor(1.5)}
    found = weigh(terms, config)
    assert {name: float(term) for name, term in found.items()} == {"ccr": 0.5 * 4, "ccs": 3 * 1.5}
    assert weigh({}, ConstraintConfig()) == {}


def test_a_model_with_other_maps_needs_no_new_code():
    """Heads of MMCA, whose rows do not sum to 1: a large weight is one above their mean."""
    model = mmca(modules="both")
    images, texts, swapped = batch(padding=0.0)
    for one in (images, texts):
        one.fragments.requires_grad_()
    terms = constraint_terms(model, images, texts, swapped, BOTH)
    (terms["ccr"] + terms["ccs"]).backward()
    assert images.fragments.grad.isfinite().all()
    assert images.fragments.grad.any()


def test_a_map_is_turned_by_its_name():
    """The same numbers as i-t of the one and t-i of the other side give the same CCR."""
    images, texts, _ = batch(more=0, padding=0.0)
    config = ConstraintConfig(ccr=1.0)
    ahead = constraint_terms(scan(direction="t-i"), images, texts, None, config)
    back = constraint_terms(scan(direction="i-t"), texts, images, None, config)
    torch.testing.assert_close(ahead["ccr"], back["ccr"])


def test_swaps_are_encoded_by_the_model():
    model = scan()
    swaps = Swaps(
        torch.tensor([[1, 4, 2], [1, 2, 0]]),
        torch.tensor([3, 2]),
        torch.tensor([1, 0]),
        torch.tensor([True, False]),
    )
    swapped = encode_swaps(model, swaps)
    wanted = model.encode_tokens(swaps.ids, swaps.lengths)
    torch.testing.assert_close(swapped.texts.fragments, wanted.fragments)
    assert swapped.texts.fragments.requires_grad
    assert swapped.places.tolist() == [1, 0]
    assert swapped.found.tolist() == [True, False]


# Refusals -------------------------------------------------------------------------------------


def test_models_that_relate_no_words_to_regions_are_refused():
    images, texts, swapped = batch(padding=0.0)
    with pytest.raises(InputError, match="mmca: relates no words to regions"):
        constraint_terms(mmca(modules="self"), images, texts, swapped, BOTH)
    images.fragments.requires_grad_()
    with pytest.raises(InputError, match="sum-max: its attention has no gradient"):
        constraint_terms(sum_max(), images, texts, swapped, BOTH)


def test_missing_swaps_are_refused():
    images, texts, swapped = batch()
    with pytest.raises(InputError, match="swapped: got none"):
        constraint_terms(scan(), images, texts, None, ConstraintConfig(ccs=1.0))
    with pytest.raises(InputError, match="swapped: got 4 sentences, wanted 3"):
        constraint_terms(scan(), images[:3], texts[:3], swapped, ConstraintConfig(ccs=1.0))


@pytest.mark.parametrize("name", ["ccr", "ccs", "ccr_margin", "ccs_margin"])
@pytest.mark.parametrize("value", [-1.0, math.nan, math.inf, True, "1"])
def test_bad_configurations_are_refused(name, value):
    with pytest.raises(InputError, match=f"constraints.{name}: got"):
        ConstraintConfig(**{name: value})


# The models' side ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["scan t-i", "scan i-t", "bfan equal", "bfan prob"])
def test_attention_has_a_gradient(name):
    model = MODELS[name]()
    images, texts = sides(COUNTS, LENGTHS, padding=0.0)
    counts, lengths = images.counts, texts.counts
    pick = draw(*model.attention(images, texts).weights.shape, seed=9)

    def weigh(regions, words):
        found = model.attention(Encoded(None, regions, counts), Encoded(None, words, lengths))
        return (found.weights * pick).sum()

    parts = tuple(side_of.fragments.clone().requires_grad_() for side_of in (images, texts))
    assert torch.autograd.gradcheck(weigh, parts, eps=1e-7, atol=1e-5)


def test_dense_attention_of_bfan_is_what_focus_worked_on():
    images, texts = sides(COUNTS, LENGTHS)
    found = bfan().attention(images, texts)
    assert isinstance(found, Attention)
    ahead = scan(direction="t-i", lambda1=20.0).attention(images, texts).weights[:, 0]
    back = scan(direction="i-t", lambda1=20.0).attention(images, texts).weights[:, 0]
    torch.testing.assert_close(found.dense, torch.stack([ahead, back], dim=1))
    kept = found.weights > 0
    assert (found.dense[kept] > 0).all()
    assert 0 < kept.sum() < (found.dense > 0).sum()
