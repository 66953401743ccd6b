package predict

import "parley/methods/regression/glm"

// unseen is what the next rows lack of an activation.
func (m *Predictor) unseen(k int) lacking {
	if m.lacking == nil {
		return lacking{}
	}
	return m.lacking[k]
}

// Complete makes the next rows ones that lack nothing.
func (m *Predictor) Complete() { m.lacking = nil }

// Lacks makes the next rows ones of a subject who lacks a feature: its row x, where the feature has
// no effect, is one of these others with these probabilities. Of several features each is taken by
// itself. The activation is taken for normal. It keeps its mean where centred: what the
// feature is on average is then not known.
func (m *Predictor) Lacks(x glm.Row, others []glm.Row, shares []float64, centred bool) {
	k := len(m.A)
	if m.lacking == nil {
		m.lacking = make([]lacking, k)
	}
	here, there := make([]float64, k), make([]float64, k)
	mean, square, unsure := make([]float64, k), make([]float64, k), make([]float64, k)
	for j := range here {
		here[j], unsure[j] = m.observed(x, j*m.columns)
		unsure[j] = -unsure[j]
	}
	for i, r := range others {
		common := 0.0 // to all classes, which changes no probability
		for j := range there {
			var c float64
			there[j], c = m.observed(r, j*m.columns)
			there[j] -= here[j]
			unsure[j] += shares[i] * c
			if k > 1 {
				common += there[j] / float64(k)
			}
		}
		for j, a := range there {
			mean[j] += shares[i] * (a - common)
			square[j] += shares[i] * (a - common) * (a - common)
		}
	}
	// Classes are predicted as if their activations were independent, though these add up to 0. Their
	// distances have the right variance on average.
	scale := 1.0
	if k > 1 {
		scale = float64(k) / float64(k-1)
	}
	for j := range m.lacking {
		if !centred {
			m.lacking[j].shift += mean[j]
		}
		m.lacking[j].variance += max(unsure[j]+scale*(square[j]-mean[j]*mean[j]), 0)
	}
}
