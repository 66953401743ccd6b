// Package evaluate measures fitted models and prepares the conditions under
// which they are compared: how subjects are spread over sites ([Assign],
// [Scheme], [Lacking]), which are held out ([FoldsOf]), how values are scaled
// ([FitMinMax]), what is scored ([Describe] for descriptions of features,
// [Outcome.Judge] for predictions), what learns next to nothing ([FitPCA],
// [Outcome.FitBaseRate]) and how two methods compare ([Paired]). It knows neither
// engine nor methods: it sees a [Model].
//
// Everything random is a function of a seed and the subjects' ids, never of
// the order in which they arrive. Everything here reads rows in one process,
// so it is for simulations, for one site's own data, and for statistics that
// were already released; nothing it computes may leave a site by itself.
package evaluate

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"parley/problem"
)

// Scenario says how the subjects and views of one data set are spread over
// several sites: Table 1 of the Fed-mv-PPCA paper (MELBA 2022), a column, or
// the distribution schemes of partitioned variational inference.
//
// For G and K the C sites fall into three consecutive blocks of C/3 sites.
// Where C is not divisible by 3 the earlier blocks are the larger ones, and a
// block is empty when there are fewer than three sites.
type Scenario uint8

const (
	// IID spreads the subjects evenly, group by group; every site has all views.
	IID Scenario = iota
	// G spreads groups unevenly: the first block of sites holds both groups,
	// the second only group 1, the last only group 2. The levels of the group
	// in ascending order are split in two halves, which are group 1 and 2.
	G
	// K spreads the subjects as IID does, but the second block of sites lacks
	// the second view and the last block the third view.
	K
	// GK is G and K together.
	GK
	// Column puts each subject at the site that its group names.
	Column
	// Unequal makes half of the sites small and half large, with other shares
	// of two groups; a [Scheme] says how far they differ.
	Unequal
)

var scenarioNames = [...]string{"IID", "G", "K", "G/K", "column", "unequal"}

// String returns the scenario's name, that of the paper where it has one.
func (s Scenario) String() string {
	if int(s) < len(scenarioNames) {
		return scenarioNames[s]
	}
	return fmt.Sprintf("Scenario(%d)", uint8(s))
}

// ParseScenario reads a scenario's name, in any case; G/K may be written gk.
func ParseScenario(name string) (Scenario, error) {
	for i, n := range scenarioNames {
		if strings.EqualFold(name, n) || strings.EqualFold(name, strings.ReplaceAll(n, "/", "")) {
			return Scenario(i), nil
		}
	}
	return 0, fmt.Errorf("scenario %q: unknown; use one of %s", name, strings.Join(scenarioNames[:], ", "))
}

// lacksViews says whether the scenario takes views away from some sites.
func (s Scenario) lacksViews() bool { return s == K || s == GK }

// Subject is what decides where a subject goes.
type Subject struct {
	ID    string
	Group string // level of the column that scenarios go by; "" if none
	// Person is the same of all rows of one person; "" if the subject is another than all others. Whoever
	// divides subjects keeps a person's together, as the group of the one with the first id says.
	Person string
}

// together returns one subject of each person, and by its id those of the others.
func together(subjects []Subject) (first []Subject, others map[string][]string) {
	ids := map[string]string{} // of the first, by person
	others = map[string][]string{}
	for _, s := range slices.SortedFunc(slices.Values(subjects), func(a, b Subject) int {
		return cmp.Compare(a.ID, b.ID)
	}) {
		if id, known := ids[s.Person]; known && s.Person != "" {
			others[id] = append(others[id], s.ID)
			continue
		}
		ids[s.Person] = s.ID
		first = append(first, s)
	}
	return first, others
}

// joined puts the other subjects of persons where the first is.
func joined(placed []Placement, others map[string][]string) []Placement {
	for _, p := range slices.Clone(placed) {
		for _, id := range others[p.ID] {
			placed = append(placed, Placement{id, p.Site})
		}
	}
	sortPlacements(placed)
	return placed
}

// Placement puts one subject at one site.
type Placement struct {
	ID   string
	Site int // index into the sites given to Assign
}

// SiteNames returns the names site1, site2, … for n sites that have no other.
func SiteNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("site%d", i+1)
	}
	return names
}

// Assign spreads subjects over sites, in ascending order of id. The result
// depends on the seed and the set of subjects, not on their order. IID and K give the sites equally many subjects,
// and equally many of every group, but for one. G and G/K give the first block its share of every group and the
// other blocks the rest of theirs. It is an error if an id is repeated, a site would get no subject, a group is
// missing or the only one, or Column finds one that is no site. [Scheme.Assign] makes unequal sites.
func Assign(subjects []Subject, sites []string, sc Scenario, seed uint64) ([]Placement, error) {
	if len(sites) == 0 {
		return nil, fmt.Errorf("scenario %v: no sites", sc)
	}
	subjects, others := together(subjects)
	byGroup, levels, err := stratify(subjects, seed, "site")
	if err != nil {
		return nil, fmt.Errorf("scenario %v: %w", sc, err)
	}
	var placed []Placement
	switch sc {
	case IID, K:
		all := block{0, len(sites)}
		next := 0
		for _, level := range levels {
			placed = all.deal(placed, byGroup[level], &next)
		}
	case G, GK:
		placed, err = assignGroups(byGroup, levels, len(sites))
	case Column:
		placed, err = assignColumn(byGroup, levels, sites)
	case Unequal:
		err = fmt.Errorf("does not say how far sites differ")
	default:
		err = fmt.Errorf("unknown")
	}
	if err != nil {
		return nil, fmt.Errorf("scenario %v: %w", sc, err)
	}
	count := make([]int, len(sites))
	for _, p := range placed {
		count[p.Site]++
	}
	if i := slices.Index(count, 0); i >= 0 {
		return nil, fmt.Errorf("scenario %v: no subject for site %s (%d subjects, %d sites)", sc, sites[i],
			len(subjects), len(sites))
	}
	return joined(placed, others), nil
}

// sortPlacements puts them in ascending order of id.
func sortPlacements(placed []Placement) {
	slices.SortFunc(placed, func(a, b Placement) int { return cmp.Compare(a.ID, b.ID) })
}

// Lacking returns, for every site, the indices of the views that the scenario
// takes away from it. Under K and G/K there must be at least three views.
func Lacking(sc Scenario, sites, views int) ([][]int, error) {
	lacking := make([][]int, sites)
	if !sc.lacksViews() {
		return lacking, nil
	}
	if views < 3 {
		there := fmt.Sprintf("there are only %d views", views)
		if views == 1 {
			there = "there is only one"
		}
		return nil, fmt.Errorf("scenario %v takes the second and the third view away from some sites, but %s: use IID "+
			"or G", sc, there)
	}
	for view, b := range blocks(sites) {
		for site := b.from; view > 0 && site < b.to; site++ {
			lacking[site] = []int{view}
		}
	}
	return lacking, nil
}

// block is the sites from ≤ i < to.
type block struct{ from, to int }

// blocks splits the sites into the paper's three.
func blocks(sites int) [3]block {
	var b [3]block
	for i := range b {
		b[i] = block{(i*sites + 2) / 3, ((i+1)*sites + 2) / 3}
	}
	return b
}

// deal gives ids to the sites of the block in turn, starting with the one that
// next counts to, so that the sites stay level from one group to the next.
func (b block) deal(placed []Placement, ids []string, next *int) []Placement {
	for _, id := range ids {
		placed = append(placed, Placement{id, b.from + *next%(b.to-b.from)})
		*next++
	}
	return placed
}

func assignGroups(byGroup map[string][]string, levels []string, sites int) ([]Placement, error) {
	if ids := byGroup[""]; len(ids) > 0 {
		return nil, fmt.Errorf("subject %s has no group", slices.Min(ids))
	}
	if len(levels) < 2 {
		return nil, fmt.Errorf("needs at least two groups, found %d", len(levels))
	}
	var placed []Placement
	var next [3]int
	b := blocks(sites)
	for i, level := range levels {
		own := 1
		if i >= (len(levels)+1)/2 {
			own = 2
		}
		ids := byGroup[level]
		share := len(ids)
		if b[own].from < b[own].to {
			// Rounded to the nearest whole subject.
			share = (2*share*b[0].to + sites) / (2 * sites)
		}
		placed = b[0].deal(placed, ids[:share], &next[0])
		placed = b[own].deal(placed, ids[share:], &next[own])
	}
	return placed, nil
}

func assignColumn(byGroup map[string][]string, levels, sites []string) ([]Placement, error) {
	var placed []Placement
	for _, level := range levels {
		site := slices.Index(sites, level)
		if site < 0 {
			return nil, fmt.Errorf("subject %s belongs to %q, which is not one of the sites %s",
				slices.Min(byGroup[level]), level, strings.Join(sites, ", "))
		}
		for _, id := range byGroup[level] {
			placed = append(placed, Placement{id, site})
		}
	}
	return placed, nil
}

// Scheme is the way of appendix C of Partitioned Variational Inference to make
// sites unequal: the first half of them small, the second half large, with Rho
// for how far their sizes differ and Kappa for how far the two classes of the
// subjects' groups do. It is what scenario [Unequal] needs to know.
type Scheme struct {
	Rho float64 // 0: equal sizes; 1: small sites have nobody
	// 0: classes as everywhere; 1: the larger class alone at small sites; below 0: more of the smaller one there
	Kappa float64
}

// schemes are the paper's four, of ten sites each (Table 1).
var schemes = [...]struct {
	name string
	Scheme
}{
	{"A", Scheme{0, 0}},
	{"B", Scheme{0.9, 0.95}},
	{"C", Scheme{0.7, -3}},
	{"D", Scheme{0.6, -1.5}},
}

// ParseScheme returns the paper's scheme of that name, A to D in any case.
func ParseScheme(name string) (Scheme, error) {
	var names []string
	for _, s := range schemes {
		if strings.EqualFold(name, s.name) {
			return s.Scheme, nil
		}
		names = append(names, s.name)
	}
	return Scheme{}, fmt.Errorf("scheme %q: unknown; use one of %s", name, strings.Join(names, ", "))
}

// SchemeOf returns the scheme of that name, or, where the name is "", that of
// the parameters.
func SchemeOf(name string, rho, kappa float64) (Scheme, error) {
	if name == "" {
		return Scheme{rho, kappa}, nil
	}
	return ParseScheme(name)
}

// String returns both parameters.
func (s Scheme) String() string { return fmt.Sprintf("rho %v, kappa %v", s.Rho, s.Kappa) }

// Shares are the numbers of subjects that a scheme comes to.
type Shares struct {
	Small, Large     int     // subjects of each small and each large site
	Majority         float64 // share of the larger class among all subjects, λ
	Target           float64 // the same that is aimed at for small sites, λ + (1−λ)κ
	SmallMajority    int     // subjects of the larger class at each small site
	SmallMinority    int     // the same of the smaller class
	Unused           int     // subjects that no site is given, fewer than there are sites
	MinoritySmall    float64 // share of the smaller class at small sites; NaN if they have nobody
	MinorityLeft     float64 // the same of what is left for large sites; NaN if nobody is
	enoughOfBothLeft bool
}

// Shares works out a scheme for n subjects, of whom majority are of the larger
// class: ⌊(1−ρ)n/M⌋ at each small of M sites, ⌊(1+ρ)n/M⌋ at each large one. A
// scheme that these subjects cannot fill has shares all the same: see
// [Shares.Valid].
func (s Scheme) Shares(sites, n, majority int) (Shares, error) {
	if sites < 2 || sites%2 != 0 {
		return Shares{}, fmt.Errorf("%d sites: want an even number, half of them small and half large", sites)
	}
	if !(s.Rho >= 0 && s.Rho <= 1) || math.IsNaN(s.Kappa) || math.IsInf(s.Kappa, 0) {
		return Shares{}, fmt.Errorf("%v: want rho between 0 and 1 and kappa finite", s)
	}
	if majority < 0 || majority > n || n == 0 {
		return Shares{}, fmt.Errorf("%d of %d subjects in the larger class", majority, n)
	}
	m, half := float64(sites), sites/2
	h := Shares{Small: int(math.Floor((1 - s.Rho) * float64(n) / m)),
		Large: int(math.Floor((1 + s.Rho) * float64(n) / m))}
	h.Majority = float64(majority) / float64(n)
	h.Target = h.Majority + (1-h.Majority)*s.Kappa
	h.SmallMajority = int(math.Floor(float64(h.Small) * h.Target))
	h.SmallMinority = h.Small - h.SmallMajority
	h.Unused = n - half*(h.Small+h.Large)
	left := n - half*h.Small
	h.MinoritySmall = float64(h.SmallMinority) / float64(h.Small)
	h.MinorityLeft = float64(n-majority-half*h.SmallMinority) / float64(left)
	h.enoughOfBothLeft = half*h.SmallMajority <= majority && half*h.SmallMinority <= n-majority
	return h, nil
}

// Valid says whether there are enough subjects of both classes, and no site
// would need less than none.
func (h *Shares) Valid() bool {
	return h.SmallMajority >= 0 && h.SmallMinority >= 0 && h.Unused >= 0 && h.enoughOfBothLeft
}

// Assign spreads subjects over sites as [Assign] does: the first half of the
// sites are the small ones. The groups are the two classes; of two equally large
// ones the first in ascending order counts as the larger. Large sites draw from
// everybody who is left. Subjects that the roundings leave over, [Shares.Unused],
// have no placement.
//
// It is an error if an id is repeated, if there are not two groups or a subject
// has none, if the number of sites is odd, if there are too few subjects of a
// class, and if a site would get no subject.
func (s Scheme) Assign(subjects []Subject, sites []string, seed uint64) ([]Placement, error) {
	subjects, others := together(subjects)
	byGroup, levels, err := stratify(subjects, seed, "site")
	if err != nil {
		return nil, s.refuse(err.Error(), "")
	}
	if ids := byGroup[""]; len(ids) > 0 {
		return nil, s.refuse(fmt.Sprintf("subject %s has no group", slices.Min(ids)), "")
	}
	if len(levels) != 2 {
		return nil, s.refuse(fmt.Sprintf("needs a column with two values, found %d%s", len(levels), some(levels)),
			"name a column with two values, or values to leave out as unused")
	}
	if len(byGroup[levels[1]]) > len(byGroup[levels[0]]) {
		slices.Reverse(levels)
	}
	h, err := s.Shares(len(sites), len(subjects), len(byGroup[levels[0]]))
	if err != nil {
		return nil, s.refuse(err.Error(), "")
	}
	if err := s.fits(h, byGroup, levels, len(sites)); err != nil {
		return nil, err
	}
	half := len(sites) / 2
	var placed []Placement
	var left []Subject
	for class, each := range []int{h.SmallMajority, h.SmallMinority} {
		ids, next := byGroup[levels[class]], 0
		placed = block{0, half}.deal(placed, ids[:half*each], &next)
		for _, id := range ids[half*each:] {
			left = append(left, Subject{ID: id})
		}
	}
	// Another order: in the first, who is left of each class comes last.
	mixed, _, err := stratify(left, seed, "large site")
	if err != nil {
		return nil, s.refuse(err.Error(), "")
	}
	next := 0
	placed = block{half, len(sites)}.deal(placed, mixed[""][:half*h.Large], &next)
	return joined(placed, others), nil
}

// fits says what keeps subjects from being spread by the shares, and what would
// help.
func (s Scheme) fits(h Shares, byGroup map[string][]string, levels []string, sites int) error {
	larger, smaller := len(byGroup[levels[0]]), len(byGroup[levels[1]])
	switch {
	case h.Small == 0 || h.Large == 0:
		return s.refuse(fmt.Sprintf("no subject for each of %d small sites with rho %v (%d subjects)", sites/2, s.Rho,
			larger+smaller), "a smaller rho, or fewer sites")
	case h.Target < 0 || h.Target > 1:
		return s.refuse(fmt.Sprintf("with kappa %v, %.0f %% of the subjects of a small site would be of the larger "+
			"class, %q", s.Kappa, 100*h.Target, levels[0]),
			fmt.Sprintf("kappa from %.2f to 1 with these subjects",
				math.Ceil(-100*float64(larger)/float64(smaller))/100))
	case !h.Valid():
		return s.refuse(fmt.Sprintf("with %v, each of %d small sites would have %d subjects of %q and %d of %q; there "+
			"are %d and %d", s,
			sites/2, h.SmallMajority, levels[0], h.SmallMinority, levels[1], larger, smaller),
			"rho nearer 1 makes small sites smaller; kappa nearer 0 their classes more like everybody's")
	}
	return nil
}

func (s Scheme) refuse(what, hint string) error {
	return problem.Problem{Where: "scenario " + Unequal.String(), What: what, Hint: hint}
}

// some returns a few levels after a colon.
func some(levels []string) string {
	const few = 5
	switch {
	case len(levels) == 0:
		return ""
	case len(levels) > few:
		return ": " + strings.Join(levels[:few], ", ") + ", …"
	}
	return ": " + strings.Join(levels, ", ")
}
