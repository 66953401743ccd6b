package pvi

// rowSum is one use of the noised sum that a site's update was granted: what every
// row contributes, clipped to the declared bound and summed, with noise. A
// contribution writes to v, which is zero and as long as the declared block. Clipping,
// sampling and noise are those of whoever gave the function, such as a session of
// package privacy: nothing here is relied on to protect anybody, and what comes back
// may be shown to everybody.
type rowSum func(contribution func(x Row, y float64, v []float64)) ([]float64, error)
