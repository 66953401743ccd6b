package mixture

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"parley/figure"
	"parley/method"
	"parley/methods/mixture/gmm"
	"parley/privacy/account"
	"parley/study"
)

// fewDraws keep the posterior short: no attack needs it.
const fewDraws = 64

var _ method.Attackable = Method{}

// attacker mounts the attacks on sums at frequencies.
type attacker struct{ *Attacker }

// Attack implements [method.Attackable].
func (m Method) Attack(ctx context.Context, lab method.Laboratory, t method.Target) ([]method.Attack, error) {
	b, err := NewAttacker(ctx, m, lab, t, func(p *study.Plan) (*Options, error) {
		s, err := setupOf(p)
		if err != nil {
			return nil, err
		}
		return s.Options, nil
	}, func(v *Victims) error {
		_, err := victimsStudy(v, NoProtection)
		return err
	})
	if err != nil {
		return nil, err
	}
	a := attacker{b}
	for _, mount := range []func(context.Context) error{a.exactSums, a.smallSites, a.privateSums} {
		if err := mount(ctx); err != nil {
			return nil, err
		}
	}
	return a.Came, nil
}

// victimsStudy makes a plan of the victims: with the frequencies of the plan that was asked for, if it is of features.
func victimsStudy(v *Victims, privacy study.Privacy) (*setup, error) {
	o := &Options{Components: v.Given.Components, Prior: v.Prior(), Sketch: new(SketchOptions)}
	*o.Sketch = *v.Given.Sketch
	o.Sketch.Rows = 0
	p, err := v.Study(privacy, o, func(key string) bool { return strings.HasPrefix(key, "sketch.") }, func() { o.Draws = fewDraws })
	if err != nil {
		return nil, err
	}
	return setupOf(p)
}

// bySums locates persons by what two releases of their sites differ by.
func (a attacker) bySums(ctx context.Context, s *setup, within float64) (*method.Recovered, error) {
	return a.Difference(ctx, s.Setup, within, sumsOf(s), func(own []float64) ([]float64, error) {
		return locate(s.Of, own, 1)
	})
}

// exactSums is differencing of two studies without noise.
func (a attacker) exactSums(ctx context.Context) error {
	a.Tell(withoutNoise + ": differencing")
	s, err := victimsStudy(a.Victims, NoProtection)
	if err != nil {
		return err
	}
	r, err := a.bySums(ctx, s, 0.001)
	if err != nil {
		return err
	}
	a.Found(method.Attack{Variant: withoutNoise, Name: "C: differencing two studies", Answers: 2, Of: "releases", Active: true,
		Needs: "two studies of one plan, between which one person has left or joined"}, r, 1, false)
	return nil
}

const withoutNoise = "sums without noise"

// smallSites solves for all rows of sites that have few, from one release each.
func (a attacker) smallSites(ctx context.Context) error {
	s, err := victimsStudy(a.Victims, NoProtection)
	if err != nil {
		return err
	}
	for _, n := range []int{1, 4, 8} {
		if 2*n*a.Dim > s.Of.Len() {
			break // not determined, or hardly
		}
		a.Tell(fmt.Sprintf("%s: all rows of a site with %d", withoutNoise, n))
		var truth, guesses []float64
		for j, rows := range a.Sites {
			rows = rows[:min(len(rows), n*a.Dim)]
			data, err := a.Source(rows)
			if err != nil {
				return err
			}
			tasks, err := ask(s.Plan.Sites[j:j+1])
			if err != nil {
				return err
			}
			answers, err := a.Lab.Ask(ctx, s.Plan, s.Plan.Sites[j], data, tasks...)
			if err != nil {
				return err
			}
			sum, err := sumsOf(s)(answers[0])
			if err != nil {
				return err
			}
			x, err := locate(s.Of, sum, len(rows)/a.Dim)
			if err != nil {
				return err
			}
			// Guesses come in no order: each row is held against the closest of its site.
			for row := range slices.Chunk(rows, a.Dim) {
				truth = append(truth, row...)
				guesses = append(guesses, a.Nearest(row, x)...)
			}
		}
		expected := 1.0
		if n > 5 {
			expected = 0.5
		}
		a.Found(method.Attack{Variant: withoutNoise, Name: fmt.Sprintf("C: all rows of a site with %d", n), Answers: 1, Of: "release",
			Needs: "nothing but to read the one release of an honest study"}, a.Score(truth, guesses, 0.01), expected, false)
	}
	return nil
}

// privateSums is differencing, and telling neighbours apart, with noise.
func (a attacker) privateSums(ctx context.Context) error {
	for _, epsilon := range a.Target.Epsilons {
		privacy := study.Privacy{Protection: study.ProtectionDifferential, Unit: study.UnitSubject, Adjacency: a.Target.Adjacency,
			Total: &account.Budget{Epsilon: epsilon, Delta: a.Target.Delta}}
		s, err := victimsStudy(a.Victims, privacy)
		if err != nil {
			return err
		}
		variant := fmt.Sprintf("sums, ε %g", epsilon)
		a.Tell(variant + ": differencing")
		left, err := a.differenced(ctx, s)
		if err != nil {
			return err
		}
		needs := "two private studies, charged twice; the row of one person, who has left between them or not"
		if a.Target.Adjacency == account.ReplaceOne {
			needs = "two private studies, charged twice; the row of one person, whom another known one has replaced between them or not"
		}
		a.Came = append(a.Came, method.Attack{Variant: variant, Name: "C: differencing two studies", Answers: 2, Of: "releases", Active: true, Needs: needs, ToldApart: left})
		a.Tell(variant + ": telling neighbours apart")
		told, err := a.tellApart(ctx, s)
		if err != nil {
			return err
		}
		needs = "every row of the site but one, and whether this one is there"
		if a.Target.Adjacency == account.ReplaceOne {
			needs = "every row of the site but one, and that this one is one of two"
		}
		a.Came = append(a.Came, method.Attack{Variant: variant, Name: "telling neighbours apart", Answers: 1, Of: "release", Active: true, Needs: needs, ToldApart: told})
	}
	return nil
}

// others is how many rows both of two neighbours have: the attacker takes them away,
// so that it does not matter.
const others = 10

// tellApart releases two neighbouring data sets, which are as unlike as any, again
// and again, and decides for each release by the likelihood ratio which it was of.
func (a attacker) tellApart(ctx context.Context, s *setup) (*method.ToldApart, error) {
	one, two, apart := worst(s, a.Target.Adjacency)
	common := a.Sites[0][:min(len(a.Sites[0]), others*a.Dim)]
	base := make([]float64, s.Of.Len())
	phi := make([]float64, s.Of.Len())
	add := func(to, x []float64) {
		s.Of.Features(phi, x)
		for i, v := range phi {
			to[i] += v
		}
	}
	for x := range slices.Chunk(common, a.Dim) {
		add(base, x)
	}
	with, without := slices.Clone(base), slices.Clone(base)
	add(with, one)
	rows := [2]float64{float64(len(common)/a.Dim + 1), float64(len(common) / a.Dim)}
	sites := [2][]float64{slices.Concat(common, one), common}
	if two != nil {
		add(without, two)
		rows[1] = rows[0]
		sites[1] = slices.Concat(common, two)
	}
	told := &method.ToldApart{Epsilon: s.Plan.Privacy.Total.Epsilon, Delta: s.Plan.Privacy.Total.Delta, Adjacency: a.Target.Adjacency}
	told.Allowed, told.Mechanism = mostAdvantage(told.Epsilon, told.Delta), best(visible(s))
	if two != nil { // which are not opposite, as the worst would be
		told.Mechanism = best(apart)
	}
	for world, rowsOf := range sites {
		all, err := a.releases(ctx, s, rowsOf, a.Target.Releases)
		if err != nil {
			return nil, err
		}
		for _, r := range all {
			// ln p(release | with) − ln p(release | without)
			ratio := 0.0
			for i, v := range r.Sums {
				shift := with[i] - without[i]
				ratio += shift * (v - (with[i]+without[i])/2) / (r.SD * r.SD)
			}
			shift := rows[0] - rows[1]
			ratio += shift * (r.Rows - (rows[0]+rows[1])/2) / (r.RowsSD * r.RowsSD)
			told.Trials++
			if (ratio > 0) == (world == 0) {
				told.Right++
			}
		}
	}
	return told, nil
}

// releases are n of the first site, if these were its rows.
func (a attacker) releases(ctx context.Context, s *setup, rows []float64, n int) (all []*sums, err error) {
	tasks, err := ask(s.Plan.Sites[:1])
	if err != nil {
		return nil, err
	}
	data, err := a.Source(rows)
	if err != nil {
		return nil, err
	}
	for c, err := range a.Lab.Again(ctx, s.Plan, s.Plan.Sites[0], data, tasks[0]) {
		if err != nil {
			return nil, err
		}
		r, err := open(s, c)
		if err != nil {
			return nil, err
		}
		if all = append(all, r); len(all) == n {
			break
		}
	}
	return all, nil
}

// differenced takes two releases of a site, between which one known person has left, or nobody
// has (replace-one: whom another has replaced), and decides by the likelihood ratio of
// their difference which it was. All other rows cancel, so that the attacker need not know
// them: no test on the two releases is right more often.
func (a attacker) differenced(ctx context.Context, s *setup) (*method.ToldApart, error) {
	rows := a.Sites[0][:min(len(a.Sites[0]), (others+1)*a.Dim)]
	n := s.Of.Len()
	shift, phi, count := make([]float64, n), make([]float64, n), 1.0
	s.Of.Features(shift, rows[:a.Dim])
	gone := rows[a.Dim:]
	if a.Target.Adjacency == account.ReplaceOne {
		other := a.Sites[len(a.Sites)-1][:a.Dim]
		s.Of.Features(phi, other)
		for i, v := range phi {
			shift[i] -= v
		}
		count, gone = 0, slices.Concat(gone, other)
	}
	// A laboratory whose noise follows from a seed begins anew with every call: the first
	// releases are left out, so that none is held against one with the same noise.
	before, err := a.releases(ctx, s, rows, 3*a.Target.Releases)
	if err != nil {
		return nil, err
	}
	told := &method.ToldApart{Epsilon: 2 * s.Plan.Privacy.Total.Epsilon, Delta: 2 * s.Plan.Privacy.Total.Delta, Adjacency: a.Target.Adjacency}
	told.Allowed = mostAdvantage(told.Epsilon, told.Delta)
	for world, now := range [][]float64{rows, gone} {
		after, err := a.releases(ctx, s, now, a.Target.Releases)
		if err != nil {
			return nil, err
		}
		for i, r := range after {
			b := before[(world+1)*a.Target.Releases+i]
			sd, countSD := math.Hypot(b.SD, r.SD), math.Hypot(b.RowsSD, r.RowsSD)
			// ln p(difference | left) − ln p(difference | nobody did), and how many standard
			// deviations apart the two are, squared.
			ratio, mu := count*(b.Rows-r.Rows-count/2)/(countSD*countSD), count*count/(countSD*countSD)
			for j, v := range shift {
				ratio += v * (b.Sums[j] - r.Sums[j] - v/2) / (sd * sd)
				mu += v * v / (sd * sd)
			}
			told.Mechanism = best(math.Sqrt(mu))
			told.Trials++
			if (ratio > 0) == (world == 1) {
				told.Right++
			}
		}
	}
	return told, nil
}

// sumsOf reads a site's sums of φ.
func sumsOf(s *setup) func(method.Contribution) ([]float64, error) {
	return func(answer method.Contribution) ([]float64, error) {
		r, err := open(s, answer)
		if err != nil {
			return nil, err
		}
		return r.Sums, nil
	}
}

// worst is a record that moves the release the most: any one, as all are as long, or, if neighbours are
// made by exchange, one end of the box with the other of its corners whose sums are farthest, and how far
// these are, in standard deviations of the noise.
func worst(s *setup, adjacency account.Adjacency) (one, two []float64, apart float64) {
	one = s.Lo
	if adjacency != account.ReplaceOne {
		return one, nil, visible(s)
	}
	phi, other := make([]float64, s.Of.Len()), make([]float64, s.Of.Len())
	s.Of.Features(phi, one)
	r, most := rand.New(rand.NewPCG(1, 1)), -1.0
	for range 1000 {
		x := make([]float64, len(one))
		for i, lo := range s.Lo {
			x[i] = lo + (s.Hi[i]-lo)*r.Float64()
		}
		s.Of.Features(other, x)
		if v := gmm.SquaredDistance(phi, other); v > most {
			two, most = x, v
		}
	}
	return one, two, math.Sqrt(most) / s.Scale / (s.Sum.Mechanism.Noise * s.Sum.Bound)
}

// rows are the numbers of rows of the sites that have answered, in no order.
func (all *released) rows() (rows []float64) {
	for _, a := range all.Sites {
		rows = append(rows, a.Rows)
	}
	return rows
}

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
	lead := "Whoever ran this study, and whoever gets hold of what the sites sent, can try this."
	return figure.Section{ID: "attacks", Title: "What an attacker can do with it",
		Lead: lead + "\n\nThe command “parley attack " + s.Plan.Method.Name + "” mounts such attacks on simulated studies, and prints what was recovered. An attack that is not listed may find more where there is no noise; a bound on a private release holds against all.",
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
