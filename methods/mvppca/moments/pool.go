package moments

// pooled is T of one pattern over all sites that released it.
type pooled struct {
	views    []int
	features []int
	t        []float64
	parts    []*total
	weight   []float64
	slope    []float64 // of each weight, by the count of its part
}

// weigh gives each site the weight n/(n + κ), κ being the noise over the sampling
// variance of one subject: T/n of two sites are best averaged by precision, n² where
// noise dominates. It returns the weight of a site with the mean count.
//
// n are the noised counts, drawn to their mean by as much as noise explains their
// differences (Efron and Morris, "Stein's estimation rule and its competitors",
// 1973), and at least 1.
func (q *pooled) weigh(kappa []float64) (typical float64) {
	sites := float64(len(q.parts))
	mean, noise, spread := 0.0, 0.0, 0.0
	for _, t := range q.parts {
		mean += t.count() / sites
		noise += t.countVar / sites
	}
	for _, t := range q.parts {
		spread += (t.count() - mean) * (t.count() - mean) / max(1, sites-1)
	}
	q.weight, q.slope = nil, nil
	for i, t := range q.parts {
		n, slope := mean, 0.0
		if off := t.count() - mean; spread > noise {
			keep := 1 - noise/spread
			n += keep * off
			slope = keep*(1-1/sites) + 2*noise*off*off/((sites-1)*spread*spread)
		}
		if n < 1 {
			n, slope = 1, 0
		}
		q.weight = append(q.weight, n/(n+kappa[i]))
		q.slope = append(q.slope, slope*kappa[i]/((n+kappa[i])*(n+kappa[i])))
		typical += max(1, mean) / (max(1, mean) + kappa[i]) / sites
	}
	return typical
}

// sum adds up the sites with their weights, relative to that of a typical site of
// the study. A weight that follows the noise in a count favours what the same noise
// did to T: that is taken off, E[w(c) e] = w'(c) Cov(c, e) (Stein's lemma).
func (q *pooled) sum(typical float64) {
	q.t = make([]float64, len(q.parts[0].t))
	for i, t := range q.parts {
		q.weight[i] /= typical
		bias := q.slope[i] / typical * t.countVar / t.gain[len(t.gain)-1]
		for k, x := range t.t {
			q.t[k] += q.weight[i]*x - bias*t.gain[k]
		}
	}
}
