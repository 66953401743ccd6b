package mixture

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"parley/figure"
	"parley/privacy/account"
)

// attackSection says what an attacker can do with what left the sites, as far as these
// numbers of rows are known.
func attackSection(s *setup, rows []float64) figure.Section {
	var t Attacks
	if s.Sum == nil {
		exactAttacks(s, &t, rows)
	} else {
		privateAttacks(s, &t)
	}
	return t.Section(s.Setup)
}

func exactAttacks(s *setup, t *Attacks, rows []float64) {
	d, sums := len(s.Names), s.Of.Len()
	given, whose, has := fmt.Sprintf("%d sums of each site", sums), "the smallest site", "has"
	if s.Plan.Privacy.Secure() { // of which only the total is known
		given, whose, has = fmt.Sprintf("%d sums over all sites", sums), "all sites together", "have"
	}
	t.Add("differencing two studies", "a study of the same plan, before or after one person joins or leaves", "1 release of each study", "1 release", "that person's row, exactly, if the other study is ever run")
	finds := "at a site with so few rows all of them; with some ten times more, nothing of single rows is known to be found"
	if len(rows) > 0 {
		smallest := slices.Min(rows)
		switch small := smallest * float64(d); {
		case small <= float64(sums):
			finds = fmt.Sprintf("all rows of %s, which %s %.0f: exactly if they are few or far apart, else roughly", whose, has, smallest)
		case small <= 10*float64(sums):
			finds = fmt.Sprintf("perhaps some rows of %s, which %s %.0f: fewer than ten times what is determined", whose, has, smallest)
		default:
			finds = fmt.Sprintf("nothing that is known: %s %s %.0f rows, more than ten times what is determined", whose, has, smallest)
		}
	}
	t.Add("solving for all rows of a site", "nothing but to read the one release", fmt.Sprintf("up to %d rows are determined", sums/d), given, finds)
}

func privateAttacks(s *setup, t *Attacks) {
	pr := s.Plan.Privacy
	percent := func(x float64) string { return strings.ReplaceAll(figure.Percent.Text(x), " ", "\u00a0") }
	who, what := "everything but whether one person took part", "whether that person took part"
	if pr.Adjacency == account.ReplaceOne {
		who, what = "everything but which of two rows is one person's", "which row is that person's"
	}
	t.Add("telling two neighbouring data sets apart", who, "1 release", "1 release",
		fmt.Sprintf("%s, rightly in %s of cases at most, even for the worst row (a coin: 50\u00a0%%); (ε\u00a0%s, δ\u00a0%s) alone would allow %s",
			what, percent(best(visible(s))), figure.General.Text(pr.Total.Epsilon), figure.General.Text(pr.Total.Delta), percent(mostAdvantage(pr.Total.Epsilon, pr.Total.Delta))))
	t.Add("differencing two studies", "a study of the same plan, before or after one person joins or leaves, for which every site is charged again", "1 release of each study", "1 release",
		"no row: of both releases together no more than their two charges allow")
	t.Add("solving for all rows of a site", "nothing but to read the one release", "sums without noise", "none", "no row, however few a site has: no more than the first line")
}

// visible is how far the release moves at most, in standard deviations of its noise, if
// one record joins or leaves, or is exchanged, whichever the plan is about.
func visible(s *setup) (mu float64) {
	sd := s.Sum.Mechanism.Noise * s.Sum.Bound
	if s.Plan.Privacy.Adjacency == account.ReplaceOne { // every row is as long, and two may be opposite
		return 2 / sd
	}
	return math.Sqrt(1+countEntry*countEntry) / sd
}

// best is how often the best attacker is right in the long run that must tell two
// Gaussians μ standard deviations apart, each as likely beforehand: Φ(μ/2).
func best(mu float64) float64 { return math.Erfc(-mu/math.Sqrt(8)) / 2 }

// Attacks is what an attacker can do with what left the sites of one study.
type Attacks struct {
	attack, needs, takes, given, finds []string
}

// Add adds one: what it is called, what it needs and takes, what a study gives of that, and
// what is found.
func (t *Attacks) Add(attack, needs, takes, given, finds string) {
	t.attack, t.needs, t.takes = append(t.attack, attack), append(t.needs, needs), append(t.takes, takes)
	t.given, t.finds = append(t.given, given), append(t.finds, finds)
}

// Section says what can be found out from what left the sites in this study: what the
// method has added.
func (t *Attacks) Section(s *Setup) figure.Section {
	return figure.Section{ID: "attacks", Title: "What an attacker can do with it",
		Lead: "Whoever ran this study, and whoever gets hold of what the sites sent, can try this.\n\nThe command “parley attack " + s.Plan.Method.Name + "” attacks simulated studies, and prints what came of it. An attack that is not listed may find more where there is no noise; a bound on a private release holds against all.",
		Items: []figure.Item{{Table: &figure.Table{ID: "attacks", Title: "Attacks", Columns: []figure.Column{
			{Name: "attack", Text: t.attack}, {Name: "the attacker needs", Text: t.needs}, {Name: "it takes", Text: t.takes},
			{Name: "given in this study", Text: t.given}, {Name: "it finds here", Text: t.finds}}}}}}
}

// Found says what exact answers determine.
func Found(given, takes int, what, otherwise string) string {
	if given >= takes {
		return what
	}
	return otherwise
}

// mostAdvantage returns how often, at most, anybody is right who must tell from a
// release under (ε, δ) which of two records it held, both equally likely
// beforehand: (e^ε + δ)/(1 + e^ε) (Kairouz, Oh and Viswanath 2015).
func mostAdvantage(epsilon, delta float64) float64 {
	e := math.Exp(-epsilon)
	return min(1, (1+delta*e)/(1+e))
}
