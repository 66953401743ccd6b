package landmark

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"parley/figure"
	"parley/methods/mixture/gmm"
	"parley/methods/mixture/inversion"
	"parley/methods/mixture/report"
	"parley/privacy/account"
)

// rows are the numbers of rows of the sites that have answered, in no order.
func (all *released) rows() (rows []float64) {
	for _, a := range all.Sites {
		rows = append(rows, a.Rows)
	}
	return rows
}

// attackSection says what an attacker can do with what left the sites, as far as these
// numbers of rows are known.
func attackSection(s *Setup, rows []float64) figure.Section {
	var t report.Attacks
	if s.Sum == nil {
		exactAttacks(s, &t, rows)
	} else {
		privateAttacks(s, &t)
	}
	return t.Section(s.Setup)
}

func exactAttacks(s *Setup, t *report.Attacks, rows []float64) {
	d, landmarks := len(s.Names), s.Of.Len()
	given := fmt.Sprintf("%d sums of each site", landmarks)
	t.Add("differencing two studies", "a study of the same plan, before or after one person joins or leaves", "1 release of each study", "1 release", "that person's row, exactly, if the other study is ever run")
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
	t.Add("solving for all rows of a site", "nothing but to read the one release", fmt.Sprintf("up to %d rows are determined", landmarks/d), given, finds)
}

func privateAttacks(s *Setup, t *report.Attacks) {
	pr := s.Plan.Privacy
	percent := func(x float64) string { return strings.ReplaceAll(figure.Percent.Text(x), " ", "\u00a0") }
	who, what := "everything but whether one person took part", "whether that person took part"
	if pr.Adjacency == account.ReplaceOne {
		who, what = "everything but which of two rows is one person's", "which row is that person's"
	}
	t.Add("telling two neighbouring data sets apart", who, "1 release", "1 release",
		fmt.Sprintf("%s, rightly in %s of cases at most, even for the worst row (a coin: 50\u00a0%%); (ε\u00a0%s, δ\u00a0%s) alone would allow %s",
			what, percent(Best(Visible(s))), figure.General.Text(pr.Total.Epsilon), figure.General.Text(pr.Total.Delta), percent(inversion.MostAdvantage(pr.Total.Epsilon, pr.Total.Delta))))
	t.Add("differencing two studies", "a study of the same plan, before or after one person joins or leaves, for which every site is charged again", "1 release of each study", "1 release",
		"no row: of both releases together no more than their two charges allow")
	t.Add("solving for all rows of a site", "nothing but to read the one release", "sums without noise", "none", "no row, however few a site has: no more than the first line")
}

// Visible is how far the release moves at most, in standard deviations of its noise, if
// one record joins or leaves, or is exchanged, whichever the plan is about. It is
// a little less than what was charged, as no record fills the ball that is.
func Visible(s *Setup) (mu float64) {
	sd := s.Sum.Mechanism.Noise * s.Sum.Bound
	if s.sketched() { // every row is as long, and two may be opposite
		if s.Plan.Privacy.Adjacency == account.ReplaceOne {
			return 2 / sd
		}
		return math.Sqrt(1+countEntry*countEntry) / sd
	}
	one, two := Worst(s, s.Plan.Privacy.Adjacency)
	phi, other := make([]float64, s.Marks.Len()), make([]float64, s.Marks.Len())
	s.Marks.Features(phi, one)
	count := countEntry
	if two != nil {
		s.Marks.Features(other, two)
		count = 0 // both are counted
	}
	return math.Sqrt(gmm.SquaredDistance(phi, other)/(s.Scale*s.Scale)+count*count) / sd
}

// Best is how often the best attacker is right in the long run that must tell two
// Gaussians μ standard deviations apart, each as likely beforehand: Φ(μ/2).
func Best(mu float64) float64 { return math.Erfc(-mu/math.Sqrt(8)) / 2 }

// Worst is the record that moves the release the most: alone, or, if neighbours are
// made by exchange, with the other end. They lie at landmarks, where φ is longest.
func Worst(s *Setup, adjacency account.Adjacency) (one, two []float64) {
	n := s.Marks.Len()
	phi := make([][]float64, n)
	at, most := 0, 0.0
	for r := range n {
		phi[r] = make([]float64, n)
		s.Marks.Features(phi[r], s.Marks.Point(r))
		if v := gmm.Squares(phi[r]); v > most {
			at, most = r, v
		}
	}
	if adjacency != account.ReplaceOne {
		return s.Marks.Point(at), nil
	}
	other, most := 0, 0.0
	for r := range n {
		if v := gmm.SquaredDistance(phi[at], phi[r]); v > most {
			other, most = r, v
		}
	}
	return s.Marks.Point(at), s.Marks.Point(other)
}
