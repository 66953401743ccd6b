package draft

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"parley/dataset"
	"parley/problem"
	"parley/study"
)

// column is what all sites together have of a column.
type column struct {
	dataset.ColumnProfile
	at    []*dataset.ColumnProfile // by site; nil where it is not
	words map[string]int64
	kinds map[string]int64 // of its numbers, if they are few
}

// leaveOut forgets the views and columns that a person does not want.
func (d *Draft) leaveOut(unwanted []string) error {
	var known []string
	found := map[string]bool{}
	for i := range d.Sites {
		s := &d.Sites[i]
		s.profiles = slices.DeleteFunc(s.profiles, func(p dataset.ColumnProfile) bool {
			known = append(known, p.View, p.Name)
			byView := p.View != "" && slices.Contains(unwanted, p.View)
			if !byView && !slices.Contains(unwanted, p.Name) {
				return false
			}
			l := leftOut{p.View, p.Name, "named in --leave-out"}
			if !slices.Contains(d.LeftOut, l) {
				d.LeftOut = append(d.LeftOut, l)
			}
			found[p.Name], found[p.View] = true, found[p.View] || byView
			return true
		})
	}
	for _, name := range unwanted {
		if !found[name] {
			return problem.Problem{Where: "--leave-out", What: fmt.Sprintf("no view and no column is called %s", name),
				Hint: problem.DidYouMean(name, known, "")}
		}
	}
	return nil
}

// mergeColumns merges the sites' profiles, in the order in which columns first appear.
func (d *Draft) mergeColumns() {
	known := map[[2]string]*column{}
	for i := range d.Sites {
		for j := range d.Sites[i].profiles {
			p := &d.Sites[i].profiles[j]
			key := [2]string{p.View, p.Name}
			c := known[key]
			if c == nil {
				c = &column{ColumnProfile: dataset.ColumnProfile{View: p.View, Name: p.Name},
					at: make([]*dataset.ColumnProfile, len(d.Sites)), words: map[string]int64{},
					kinds: map[string]int64{}}
				known[key], d.columns = c, append(d.columns, c)
			}
			c.at[i] = p
			c.Numbers, c.Other, c.Missing, c.Otherwise, c.Dates, c.Many = c.Numbers+p.Numbers, c.Other+p.Other,
				c.Missing+p.Missing, c.Otherwise+p.Otherwise, c.Dates+p.Dates, c.Many || p.Many
			for _, w := range p.Words {
				c.words[w.Text] += w.Cells
			}
			for kind, n := range p.Kinds {
				c.kinds[kind] += n
			}
		}
	}
}

// unite takes few words and numbers of a column for the levels of a category, as where a site has m and f, and
// another 1 and 2.
func (d *Draft) unite(c *column) {
	levels, _ := c.levels(d.Missing)
	if len(levels) == 0 || c.Numbers == 0 || c.Otherwise+c.Dates > 0 ||
		len(levels)+len(c.kinds) > maxOutcome {
		return
	}
	for kind, n := range c.kinds {
		c.words[kind] += n
	}
	c.Numbers = 0
	for _, alone := range [][]string{slices.Collect(maps.Keys(c.kinds)), levels} {
		if len(alone) == 1 {
			d.Said.Add(problem.Problem{Where: c.where() + ", feature " + c.Name,
				What: fmt.Sprintf("%q stands among %s, and is taken for a level", alone[0],
					problem.Names(slices.Sorted(maps.Keys(c.words)))),
				Hint: "if it stands for a missing value: --missing " + quote(alone[0])})
			return
		}
	}
}

// where names the view of a column, or the subjects tables.
func (c *column) where() string {
	if c.View == "" {
		return "subjects"
	}
	return "view " + c.View
}

// has says at which sites a column is, and at which sites that have its view it is not.
func (d *Draft) has(c *column) (yes, no []string) {
	for i := range d.Sites {
		if c.at[i] != nil {
			yes = append(yes, d.Sites[i].Name)
		} else if d.hasView(i, c.View) {
			no = append(no, d.Sites[i].Name)
		}
	}
	return yes, no
}

// hasView says whether a site has a view; every site has subjects, "".
func (d *Draft) hasView(site int, view string) bool {
	return view == "" || slices.ContainsFunc(d.Sites[site].profiles, func(p dataset.ColumnProfile) bool {
		return p.View == view
	})
}

// parted says who has a column and who has not.
func parted(yes, no []string) string {
	have := map[bool]string{false: "has", true: "have"}
	return fmt.Sprintf("%s %s it, and %s %s not", few(yes), have[len(yes) > 1], few(no), have[len(no) > 1])
}

// findSubjects lists the columns of the subjects tables that describe results: those of
// every site that have a few levels. Others may be names of people.
func (d *Draft) findSubjects(o Options) {
	for _, c := range d.columns {
		if c.View != "" {
			continue
		}
		levels, rare := c.levels(d.Missing)
		site := dataset.NamesSites(c.Name)
		numbers := c.Numbers > 0 && c.Other == 0 && !site
		yes, no := d.has(c)
		why := ""
		switch {
		case len(no) > 0:
			why = parted(yes, no)
		case c.observed() == 0 && !c.Many:
			why = "it has no value"
		case d.unmeant(c) != "":
			why = d.unmeant(c)
		// a scale; fewer are kinds, and what is rare may be a code
		case numbers && (c.Many || len(c.words) > maxOutcome || len(levels) > 3 && (rare || inRow(levels))):
			if c.Many || len(c.words) > maxOutcome {
				levels = nil
			}
			d.Candidates = append(d.Candidates, candidate{Column: c.Name, kinds: levels})
			d.Subjects = append(d.Subjects, c.Name)
			continue
		case c.dates():
			why = holdsDates
		case c.Many || len(levels) > maxLevels && !site || len(levels) == 0 && len(c.words) > maxLevels:
			why = "it has too many values to describe results"
		case len(levels) == 0:
			why = fmt.Sprintf("it has no value that %d subjects have", dataset.SmallCell)
		}
		if why != "" {
			d.leave(c, why)
			continue
		}
		d.Subjects = append(d.Subjects, c.Name)
		if !rare && len(levels) >= 2 && len(levels) <= maxOutcome {
			d.Candidates = append(d.Candidates, candidate{Column: c.Name, Levels: levels})
		}
		if site && len(d.Sites) == 1 && len(levels) > 1 {
			d.Said.Add(problem.Problem{File: c.at[0].File, Where: c.Name,
				What: fmt.Sprintf("this column seems to name %d sites, and the plan simulates other ones", len(levels)),
				Hint: fmt.Sprintf("parley data split %s --scenario column --by %s --plan %s --out FOLDER\n"+
					"then: parley init FOLDER --outcome %s --out OTHER.yaml", quote(d.Data), quote(c.Name),
					quote(o.Plan), quote(o.Outcome))})
		}
	}
}

// inRow says whether levels are whole numbers one after the other, as counts and scores are.
func inRow(levels []string) bool {
	first, _ := strconv.Atoi(levels[0]) // 0 of what is no number
	for i, l := range levels {
		if l != strconv.Itoa(first+i) {
			return false
		}
	}
	return true
}

// unmeant says why a column is neither a measurement nor a result, by its name: what REDCap adds, and postal codes.
func (d *Draft) unmeant(c *column) string {
	const own = "redcap_"
	name := strings.ToLower(c.Name)
	switch {
	case dataset.NamesSites(c.Name) && c.View == "":
	case dataset.NamesSites(c.Name) && c.partsSites():
		return "it says at which site a subject is: such a column belongs in the subjects table"
	case strings.HasPrefix(name, own), strings.HasSuffix(name, "_complete") &&
		slices.ContainsFunc(d.columns, func(o *column) bool { return strings.HasPrefix(o.Name, own) }):
		return "REDCap adds it to its forms"
	case slices.Contains([]string{"zip", "zipcode", "postcode", "postalcode", "plz", "postleitzahl"},
		problem.Key(c.Name)):
		return "a postal code is no amount"
	}
	return ""
}

// partsSites says whether no two sites have a value of a column in common, and no number has a fraction: a view may as
// well have the centre of something, or a cohort that all sites have.
func (c *column) partsSites() bool {
	for kind := range c.kinds {
		if strings.Contains(strings.TrimSuffix(kind, ".0"), ".") {
			return false
		}
	}
	n := 0
	for _, i := range c.sites() {
		n += len(c.at[i].Kinds) + len(c.at[i].Words)
	}
	return n == len(c.kinds)+len(c.words)
}

// areKinds says whether a column's few numbers are kinds by its name, and none looks like a code for a missing value; 0
// and 1 serve as they are.
func (c *column) areKinds() bool {
	key, n := problem.Key(c.Name), len(c.kinds)
	if n == 2 && c.kinds["0"] > 0 && c.kinds["1"] > 0 {
		return false
	}
	for kind := range c.kinds {
		if kind[0] == '-' || strings.ContainsAny(kind[:1], "789") && strings.Trim(kind, kind[:1]) == "" {
			return false
		}
	}
	return n > 1 && n <= maxOutcome && (strings.HasSuffix(key, "conceptid") ||
		slices.Contains([]string{"sex", "gender", "geschlecht", "race", "ethnicity", "ethnic", "ethnie", "religion",
			"maritalstatus", "bloodgroup", "bloodtype"}, key))
}

const holdsDates = "it holds dates; give a number instead, such as the days since a first visit"

// dates says whether most cells are dates.
func (c *column) dates() bool { return 2*c.Dates > c.observed() }

// observed counts the cells that are not missing, of those that are counted.
func (c *column) observed() (n int64) {
	for _, count := range c.words {
		n += count
	}
	if c.View == "" { // whose words are all cells
		return n
	}
	return n + c.Numbers
}

// levels returns the words of a column that enough subjects have, without those that
// stand for missing values, and whether there are others.
func (c *column) levels(missing []string) (levels []string, rare bool) {
	for _, w := range slices.Sorted(maps.Keys(c.words)) {
		switch {
		case c.absent(w) || slices.Contains(missing, w):
		case c.words[w] < dataset.SmallCell:
			rare = true
		default:
			levels = append(levels, w)
		}
	}
	return levels, rare
}

// absent says whether a word stands for a missing value; beside + and ++ a - does not.
func (c *column) absent(word string) bool {
	return absent(word) && !(word == "-" && c.words["+"] > 0)
}

// subject is a column of the subjects tables; nil if there is none of that name.
func (d *Draft) subject(name string) *column {
	for _, c := range d.columns {
		if c.View == "" && c.Name == name {
			return c
		}
	}
	return nil
}

func (d *Draft) leave(c *column, why string) {
	d.LeftOut = append(d.LeftOut, leftOut{c.View, c.Name, why})
}

// choose settles the method: with an outcome a regression, else factors.
func (d *Draft) choose(outcome string) error {
	d.Method = "factors"
	if outcome == "" {
		return nil
	}
	d.Method = "regression"
	var known []string
	for i, c := range d.Candidates {
		if known = append(known, c.Column); c.Column == outcome {
			d.Outcome = &d.Candidates[i]
			if l := d.Outcome.Levels; len(l) == 2 && absence(l[1]) && !absence(l[0]) { // what is estimated is the last
				d.Outcome.Levels = []string{l[1], l[0]}
			}
		}
	}
	if d.Outcome == nil {
		hint := fmt.Sprintf("an outcome is a column of every site's subjects table, of numbers or with 2 to %d levels "+
			"that three subjects or more have", maxOutcome)
		if len(known) > 0 {
			hint += "; here: " + few(known)
		}
		return problem.Problem{Where: "--outcome", What: fmt.Sprintf("%s cannot be an outcome: %s", outcome,
			d.whyNot(outcome, known)), Hint: hint}
	}
	c := d.subject(outcome)
	d.Incomplete = c.Missing + d.codesIn(c)
	return nil
}

// absence says whether a level is that of people who have not what is asked for, in some languages.
func absence(level string) bool {
	return level == "-" || slices.Contains([]string{"no", "n", "nein", "non", "nee", "nej", "nie", "não", "nao", "ne",
		"false", "negative", "negativ", "negatif", "absent", "none", "control", "0", "alive", "survived", "survivor",
		"lebend", "überlebt", "censored", "healthy", "gesund", "normal", "benign", "nonresponder"}, problem.Key(level))
}

// codesIn counts the cells of a column that hold a code for a missing value, and makes words
// that are usual as such codes of the study.
func (d *Draft) codesIn(c *column) (cells int64) {
	for w, n := range c.words {
		known := slices.Contains(d.Missing, w)
		if !known && c.absent(w) {
			d.Missing, known = append(d.Missing, w), true
		}
		if known {
			cells += n
		}
	}
	slices.Sort(d.Missing)
	return cells
}

// whyNot says why a column is no outcome.
func (d *Draft) whyNot(outcome string, known []string) string {
	for _, l := range d.LeftOut {
		if l.View == "" && l.Column == outcome {
			return l.Why
		}
	}
	for _, c := range d.columns {
		if levels, rare := c.levels(d.Missing); c.Name != outcome {
			continue
		} else if c.View != "" {
			return "it is a column of view " + c.View + ", and an outcome stands in subjects.csv"
		} else if rare {
			seldom := slices.DeleteFunc(slices.Sorted(maps.Keys(c.words)), func(w string) bool {
				return c.words[w] >= dataset.SmallCell || c.absent(w) || slices.Contains(d.Missing, w)
			})
			return fmt.Sprintf("it has values that fewer than %d subjects have: %s", dataset.SmallCell,
				problem.Names(seldom))
		} else if len(levels) == 1 {
			return fmt.Sprintf("it has one value, %q, beside cells that are empty, NA or codes for missing values",
				levels[0])
		} else {
			return "it has " + plural(len(levels), "level")
		}
	}
	if near := problem.Nearest(outcome, known); near != "" {
		return "there is no such column; did you mean " + near + "?"
	}
	return "there is no such column"
}

// findViews lists the views with their features.
func (d *Draft) findViews() {
	owner := map[string]string{}
	for _, name := range d.Subjects {
		owner[name] = "the subjects table"
	}
	for _, c := range d.columns {
		if c.View == "" {
			continue
		}
		f, why := d.feature(c)
		if unmeant := d.unmeant(c); unmeant != "" {
			why = unmeant
		} else if yes, no := d.has(c); len(no) > 0 {
			why = parted(yes, no)
		} else if other := owner[c.Name]; other != "" {
			why = "it is a column of " + other + " too"
			d.Said.Add(problem.Problem{Where: c.where(), What: fmt.Sprintf("%s is left out: %s", c.Name, why),
				Hint: "give every column a name of its own"})
		}
		if why != "" {
			d.leave(c, why)
			continue
		}
		owner[c.Name] = c.where()
		at := slices.IndexFunc(d.Views, func(v view) bool { return v.Name == c.View })
		if at < 0 {
			d.Views, at = append(d.Views, view{Name: c.View}), len(d.Views)
		}
		d.Views[at].Features = append(d.Views[at].Features, f)
	}
	slices.SortFunc(d.Views, func(a, b view) int { return strings.Compare(a.Name, b.Name) })
}

// feature says what a column is, or why it is left out.
func (d *Draft) feature(c *column) (f study.Feature, why string) {
	f = study.Feature{Name: c.Name, Kind: study.Number}
	if d.Method == "regression" {
		d.unite(c)
		if len(c.words) == 0 && c.areKinds() {
			c.words, c.Numbers = c.kinds, 0
		}
	}
	words := -d.codesIn(c)
	for _, n := range c.words {
		words += n
	}
	levels, rare := c.levels(d.Missing)
	switch {
	case words == 0 && c.Numbers == 0 && !c.Many:
		return f, "it has no value"
	case words == 0 && !c.Many:
		return f, ""
	case c.dates():
		return f, holdsDates
	case c.Numbers > 0:
		return f, d.mixed(c, words)
	case c.Many || len(levels) > maxLevels:
		return f, "it is text with many values"
	case c.Missing > c.observed() && slices.ContainsFunc(levels, isSentence):
		return f, "it is free text, and mostly empty"
	case len(levels) < 2:
		return f, fmt.Sprintf("it is text without two values that %d subjects have", dataset.SmallCell)
	case d.Method != "regression":
		return f, fmt.Sprintf("it is a category (%s), and %s models numbers", few(levels), d.Method)
	}
	f.Kind, f.Levels = study.Category, levels
	if rare {
		f.Other = "other"
		if !slices.Contains(levels, f.Other) {
			f.Levels = append(f.Levels, f.Other)
		}
	}
	return f, ""
}

// isSentence says whether a word is four or more.
func isSentence(word string) bool { return len(strings.Fields(word)) > 3 }

// mixed says that a column holds words and numbers, and at which cell.
func (d *Draft) mixed(c *column, words int64) string {
	for _, p := range c.at {
		if p == nil {
			continue
		}
		for _, w := range p.Words {
			if c.absent(w.Text) || slices.Contains(d.Missing, w.Text) {
				continue
			}
			d.Said.Add(problem.Problem{File: p.File, Line: w.Line, Where: c.where() + ", feature " + c.Name,
				What: fmt.Sprintf("left out: %q is a word, and %s of this column are numbers", w.Text,
					plural(c.Numbers, "cell")),
				Hint: fmt.Sprintf("mend the cell; if it stands for a missing value: --missing %s", quote(w.Text))})
			if p.Dates > 0 {
				d.Said[len(d.Said)-1].Hint = "are the numbers days too, as a spreadsheet stores them? Write days as " +
					"2024-01-31 everywhere"
			} else if p.Numbers == 0 {
				d.Said[len(d.Said)-1].Hint = "this site has words alone: write what the others do"
				if len(p.Words) <= maxOutcome {
					d.Said[len(d.Said)-1].Hint += ", or let 'mapping.yaml' do so, as by levels: [[TRUE, 1], [FALSE, 0]]"
				}
			}
			return fmt.Sprintf("it holds %s and %s; mend the words, or give one that stands for a missing value with "+
				"--missing", plural(words, "word"), plural(c.Numbers, "number"))
		}
	}
	for _, p := range c.at {
		if p != nil && p.Other > 0 {
			d.Said.Add(problem.Problem{File: p.File, Line: p.Line, Where: c.where() + ", feature " + c.Name,
				What: fmt.Sprintf("left out: here begin %s that are words, and %s of this column are numbers",
					plural(p.Other, "cell"), plural(c.Numbers, "cell"))})
		}
	}
	return "it holds many words, and numbers"
}
