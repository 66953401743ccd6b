// Package noise draws the noise of differential privacy: the discrete Gaussian
// and the discrete Laplace distribution on the integers, exactly.
//
// Every draw follows the algorithms of Canonne, Kamath and Steinke ("The
// Discrete Gaussian for Differential Privacy", NeurIPS 2020, algorithms 1 to
// 3) on integers and rationals. No float takes part, nothing is rounded and no
// tail is cut: given uniform bits, the distribution is the stated one. What is
// added to integers and published as integers has no low-order digits that
// could tell two inputs apart (Mironov, CCS 2012).
//
// # Randomness
//
// [Keyed] is AES-256 in counter mode under a key of 256 bits; [NewKey] draws one
// from the operating system. A key serves one vector, so no two vectors share
// noise, and a computation that is repeated after a crash repeats its noise
// instead of drawing other noise for the same charge. The price is a key that has
// to be kept, from the charge until the release is stored, where whoever reads it
// takes the noise away: packages privacy and sitestore say how it is kept and
// wiped. Random bits are wiped before Fill returns. A failing source ends in an
// error and a zeroed vector, never in weaker noise.
//
// # Timing
//
// The number of random bits that a draw takes depends on its size (Jin et al.,
// 2022). A vector is drawn whole, so that only the time of all of it can be
// seen; the caller must not answer the moment that it is finished.
//
// # Privacy
//
// Let s be an integer vector (the difference of two neighbours' sums, of any
// dimension) and μ = |s|/σ. N_ℤ(0, σ²) on every entry has the Rényi divergence
// α·μ²/2 of the continuous Gaussian or less, at every order (theorem 4 there).
// Its privacy profile is that of a continuous Gaussian but for the lattice.
// With δ(ε; μ) the continuous profile, f = (p − e^ε·q)₊ and p, q the Gaussian
// densities around 0 and s, Poisson's summation gives
//
//	δ_ℤ(ε) − δ(ε; μ) = Σ_{k ∈ ℤᵈ∖0} f̂(k),  f̂(k) = exp(−2π²σ²|k⊥|²)·ĝ(k∥)
//
// up to a factor 1 ± 4d·exp(−2π²σ²) that no number can hold; k∥ and k⊥ are k's
// parts along and across s. Only k within a hair of the line along s count,
// and those lie a distance of nearly 1 apart, so there are at most two for
// each length 1, 2, 3, …. The profile along s, g, has a kink where p = e^ε·q,
// of slope j = μ·φ(a)/σ², a = ε/μ − μ/2, so that |ĝ(ω)| = j/(2πω)² + O(1/ω³)
// and
//
//	|δ_ℤ(ε) − δ(ε; μ)| ≤ (1 + O(1/σ))·μ·φ(a)/(12σ²).
//
// Since ∂δ/∂μ = φ(a), this is what a change of μ by the factor 1 + 1/(12σ²)
// does: for σ ≥ 2¹⁰ steps and μ ≤ 8 the discrete mechanism is dominated by a
// continuous Gaussian with 1.2·10⁻⁷ less noise (1/(8σ²), which leaves room for
// the term of higher order). A dominating pair survives adaptive composition
// and Poisson sampling, so rounding the noise up by 10⁻⁶ of itself covers it.
// The grids that package fixed chooses are finer, and the difference far
// smaller. A test sums the profile over the lattice: it finds 1/(24σ²), which
// is the exact supremum in one dimension.
//
// The discrete Laplace distribution of scale b bounds the loss of a shift by s
// steps by |s|₁/b exactly. Between 0 and that bound an entry's profile differs
// from the continuous one by less than 1/(8b²): at ε = 0 it is 1 − e^(−s/2b)
// for even s and 1 − e^(−s/2b)·sech(1/2b) for odd s.
package noise
