package graffl

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"parley/figure"
	"parley/methods/graffl/inversion"
	"parley/methods/graffl/mixture"
	"parley/privacy/account"
)

// attackTable is what an attacker can do with what left the sites of one study.
type attackTable struct {
	attack, needs, takes, given, finds []string
}

func (t *attackTable) add(attack, needs, takes, given, finds string) {
	t.attack, t.needs, t.takes = append(t.attack, attack), append(t.needs, needs), append(t.takes, takes)
	t.given, t.finds = append(t.given, given), append(t.finds, finds)
}

// attackSection says what can be found out from what left the sites in this study.
// numbers is how many a site has released: about each row in variant published, about
// all of them in the others. rows are the numbers of rows of the sites, as far as they
// are known; what is said of variant landmark without noise depends on the fewest.
func (s *setup) attackSection(numbers int, rows ...float64) figure.Section {
	var t attackTable
	s.variant.attacks(s, &t, numbers, rows)
	lead := "Whoever ran this study, and whoever gets hold of what the sites sent, can try this."
	if e := s.opts.Encoder; e != nil {
		lead += " What is found are codes of rows. A code tells of its row as much as the encoder leaves in it, which is meant to be a lot."
		if e.Kind == EncoderSuffiAE {
			what := "the classifiers on their codes that sites trained"
			if e.Shared {
				what = "the encoder that one site trained, which all have, and the classifier on its codes"
			}
			t.add("reading what was trained", what, "1 release", "1 release", "not bounded: weights that were trained on rows without noise may give some of them away")
		}
	}
	if s.opts.Scarce != nil && s.sum == nil {
		t.add("reading the scores", "the scores of rows that sites held out", "1 release", "1 release", "not bounded: two studies that differ by one of these persons differ in these scores")
	}
	return figure.Section{ID: "attacks", Title: "What an attacker can do with it",
		Lead: lead + "\n\nThe command “parley attack graffl” mounts these attacks on simulated studies, and prints what was recovered. An attack that is not listed may find more where there is no noise; a bound on a private release holds against all.",
		Items: []figure.Item{{Table: &figure.Table{ID: "attacks", Title: "Attacks", Columns: []figure.Column{
			{Name: "attack", Text: t.attack}, {Name: "the attacker needs", Text: t.needs}, {Name: "it takes", Text: t.takes},
			{Name: "given in this study", Text: t.given}, {Name: "it finds here", Text: t.finds}}}}}}
}

// found says what exact answers determine.
func found(given, takes int, what, otherwise string) string {
	if given >= takes {
		return what
	}
	return otherwise
}

// rows are the numbers of rows of the sites that have answered, in no order.
func (s *state) rows() (rows []float64) {
	for _, a := range s.Sites {
		rows = append(rows, a.Rows)
	}
	return rows
}

func (s *setup) publishedAttacks(t *attackTable, rounds int) {
	d := len(s.names)
	given := fmt.Sprintf("%d distances of each row", rounds)
	t.add("trilateration", "nothing but to read the answers: the points follow from the plan's seed", fmt.Sprintf("%d distances of each row", d+1), given,
		found(rounds, d+1, "every row of every site, exactly", "for each row a sphere that it lies on, of fewer dimensions with each distance"))
	t.add("differencing", "nothing: rows come one by one", "the same", given, "whoever has joined or left is seen as a row more or less")
}

func (s *setup) setAttacks(t *attackTable, proposals int) {
	d := len(s.names)
	given := figure.Count.Text(float64(proposals)) + " means of each site"
	t.add("differencing two studies", "a study of the same plan, before or after one person joins or leaves", fmt.Sprintf("%d means of each study", d+1), given,
		found(proposals, d+1, "that person's row, exactly, if the other study is ever run", "a surface that the person's row lies on, if the other study is ever run"))
	t.add("solving for all rows", "nothing but to read the answers: the sets follow from the plan's seed", fmt.Sprintf("%s for each row", plural(d, "mean")), given,
		fmt.Sprintf("there are as many equations as unknown numbers for a site of up to %s rows; the fewer it has, the easier they are solved", figure.Count.Text(float64(proposals/d))))
	finds := "nothing more: the energy distance has no width to choose"
	if s.opts.Set.Discrepancy == string(mixture.MMD) {
		finds = "single rows, if they lie further apart than a few bandwidths"
	}
	t.add("scanning with narrow kernels", "to choose the sets that sites compare their rows with, which a task of this variant does", "some dozens of means for each row", given, finds)
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func (s *setup) exactAttacks(t *attackTable, landmarks int, rows []float64) {
	d := len(s.names)
	given := fmt.Sprintf("%d sums of each site", landmarks)
	t.add("differencing two studies", "a study of the same plan, before or after one person joins or leaves", "1 release of each study", "1 release", "that person's row, exactly, if the other study is ever run")
	finds := "at a site with so few rows all of them; with some ten times more, nothing of single rows is known to be found"
	if len(rows) > 0 {
		smallest := slices.Min(rows)
		switch small := smallest * float64(d); {
		case small <= float64(landmarks):
			finds = fmt.Sprintf("all rows of the smallest site, which has %.0f: exactly if they are few or far apart, else roughly", smallest)
		case small <= 10*float64(landmarks):
			finds = fmt.Sprintf("perhaps some rows of the smallest site, which has %.0f: fewer than ten times what is determined", smallest)
		default:
			finds = fmt.Sprintf("nothing that is known: the smallest site has %.0f rows, more than ten times what is determined", smallest)
		}
	}
	t.add("solving for all rows of a site", "nothing but to read the one release", fmt.Sprintf("up to %d rows are determined", landmarks/d), given, finds)
}

func (s *setup) privateAttacks(t *attackTable) {
	pr := s.plan.Privacy
	percent := func(x float64) string { return strings.ReplaceAll(figure.Percent.Text(x), " ", "\u00a0") }
	who, what := "everything but whether one person took part", "whether that person took part"
	if pr.Adjacency == account.ReplaceOne {
		who, what = "everything but which of two rows is one person's", "which row is that person's"
	}
	t.add("telling two neighbouring data sets apart", who, "1 release", "1 release",
		fmt.Sprintf("%s, rightly in %s of cases at most, even for the worst row (a coin: 50\u00a0%%); (ε\u00a0%s, δ\u00a0%s) alone would allow %s",
			what, percent(best(s.visible())), figure.General.Text(pr.Total.Epsilon), figure.General.Text(pr.Total.Delta), percent(inversion.MostAdvantage(pr.Total.Epsilon, pr.Total.Delta))))
	t.add("differencing two studies", "a study of the same plan, before or after one person joins or leaves, for which every site is charged again", "1 release of each study", "1 release",
		"no row: of both releases together no more than their two charges allow")
	t.add("solving for all rows of a site", "nothing but to read the one release", "sums without noise", "none", "no row, however few a site has: no more than the first line")
}

// visible is how far the release moves at most, in standard deviations of its noise, if
// one record joins or leaves, or is exchanged, whichever the plan is about. It is
// a little less than what was charged, as no record fills the ball that is.
func (s *setup) visible() (mu float64) {
	one, two := s.worst(s.plan.Privacy.Adjacency)
	sd := s.sum.Mechanism.Noise * s.sum.Bound
	phi, other := make([]float64, s.marks.Len()), make([]float64, s.marks.Len())
	s.marks.Features(phi, one)
	count := countEntry
	if two != nil {
		s.marks.Features(other, two)
		count = 0 // both are counted
	}
	return math.Sqrt(mixture.SquaredDistance(phi, other)/(s.scale*s.scale)+count*count) / sd
}

// best is how often the best attacker is right in the long run that must tell two
// Gaussians μ standard deviations apart, each as likely beforehand: Φ(μ/2).
func best(mu float64) float64 { return math.Erfc(-mu/math.Sqrt(8)) / 2 }
