package privacy

import "parley/study"

// StudyOf returns what the gate of one site must know of a plan's study, which
// lists these requests. The caller adds Subjects and Data.
func StudyOf(p *study.Plan, site string, list []Listed) (Study, error) {
	digest, err := p.Digest()
	if err != nil {
		return Study{}, err
	}
	collusion := -1
	if t := p.Privacy.Collusion; t != nil {
		collusion = *t
	}
	return Study{
		Collusion: collusion, Digest: digest.String(), Site: site, Method: p.Method.Name, Sites: len(p.Sites),
		Quorum: p.Quorum, Person: p.Privacy.Person, Guarantee: guaranteeOf(p.Privacy), Requests: list,
	}, nil
}

// guaranteeOf returns what a plan promises in total; nil if it promises nothing.
func guaranteeOf(p study.Privacy) *Guarantee {
	if !p.Differential() || p.Total == nil {
		return nil
	}
	return &Guarantee{Unit: Unit(p.Unit), Adjacency: p.Adjacency, Budget: *p.Total}
}
