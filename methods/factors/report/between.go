package report

// viewsAtOneSite speaks of views that one of several sites has alone, where sites' means differ: nothing tells how
// they differ there.
func (v *verdicts) viewsAtOneSite() {
	var alone []string
	for k, view := range v.m.Views {
		having := 0
		for _, s := range v.sites {
			if s.Cells[k] > 0 {
				having++
			}
		}
		if having == 1 && len(v.sites) > 1 {
			alone = append(alone, view.Name)
		}
	}
	if v.m.Separate() && len(alone) > 0 {
		v.add(alone, "Subjects of other sites are given these values as if they were of the one site that has them: their intervals do not hold by how much sites differ there, and are too narrow if they do.",
			"Sites' means differ, and only one site has %s", shortened(alone))
	}
}
