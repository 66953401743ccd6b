package method

import "parley/study"

// Paper is what the methods section of a paper would say of a study, and what it would cite.
type Paper struct {
	Text       string   // of the model and how it is fitted, in plain sentences
	References []string // each with its DOI
}

// Citable is a method that can say what a paper would.
type Citable interface {
	Method
	// Paper is of a checked plan.
	Paper(p *study.Plan) Paper
}

// Paper is what a paper would say of a checked plan; empty if its method does not tell.
func (r Registry) Paper(p *study.Plan) (text Paper) {
	m, _ := r.Lookup(p.Method.Name)
	c, ok := m.(Citable)
	if !ok {
		return text
	}
	if text = c.Paper(p); p.Privacy.Differential() {
		text.References = append(text.References, noise)
	}
	return text
}

// noise is what all noised sums are made by.
const noise = "Canonne C, Kamath G, Steinke T. The discrete Gaussian for differential privacy. Advances in Neural Information Processing Systems 33, 2020. doi:10.48550/arXiv.2004.00010"
