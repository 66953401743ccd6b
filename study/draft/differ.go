package draft

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"

	"parley/dataset"
	"parley/problem"
	"parley/study"
)

// differ finds what is called or written differently at the sites, or as no plan can have
// it, so that a view or a feature would be lost. Where it can be sure it returns problems;
// of other features that some sites lack it speaks in d.Said.
func (d *Draft) differ() (wrong problem.List) {
	wrong = append(d.unfitNames(), d.sameViews()...)
	wrong = append(wrong, d.spelledAlike()...)
	wrong = append(wrong, d.writtenOtherwise()...)
	if len(wrong) == 0 {
		d.absentColumns()
	}
	return wrong
}

// Differing is the error of sites that call the same differently.
type Differing struct {
	error
	// Mappings are what each such site could have as its mapping, by its folder, so that it goes by the names of most.
	Mappings map[string]string
}

// Unwrap is what is called differently.
func (d *Differing) Unwrap() error { return d.error }

// differing is such an error, where mappings could mend it.
func (d *Draft) differing(ctx context.Context, outcome string, err error) error {
	mappings, unread := d.mappings(ctx, outcome)
	return errors.Join(&Differing{err, mappings}, unread)
}

// lacking says whether some sites have a subjects column and others have not.
func (d *Draft) lacking(name string) bool {
	c := d.subject(name)
	return c != nil && len(c.sites()) < len(d.Sites)
}

// mappings proposes one for every site that can have one, to the names that most sites use; where as many use others,
// to those of the first site that has the outcome.
func (d *Draft) mappings(ctx context.Context, outcome string) (map[string]string, error) {
	most, votes, first := map[[2]string]*column{}, map[[2]string]int{}, 0
	if c := d.subject(outcome); c != nil {
		first = c.sites()[0]
	}
	key := func(c *column) [2]string { return [2]string{problem.Key(c.View), problem.Key(c.Name)} }
	for _, c := range d.columns {
		own, by := key(c), 0
		if c.at[first] != nil {
			by = 1
		}
		votes[own] += 2*len(c.sites()) + by
		if most[own] == nil || cmp.Or(c.usage(most[own]), by) > 0 {
			most[own] = c
		}
	}
	var schema dataset.Schema
	for _, c := range d.columns {
		at := slices.IndexFunc(schema.Views, func(v dataset.View) bool { return v.Name == c.View })
		own := dataset.Column{Name: c.Name}
		if own.Levels = c.usual(); own.Levels != nil {
			own.Kind = dataset.Category
		}
		switch {
		case most[key(c)] != c || votes[key(c)] <= len(d.Sites):
		case c.View == "":
			schema.Subject = append(schema.Subject, own)
		case at < 0:
			schema.Views = append(schema.Views, dataset.View{Name: c.View, Columns: []dataset.Column{own}})
		default:
			schema.Views[at].Columns = append(schema.Views[at].Columns, own)
		}
	}
	all := map[string]string{}
	for i := range d.Sites {
		text, err := dataset.ProposeMapping(ctx, d.Sites[i].Folder, schema)
		if err != nil {
			return nil, err
		}
		if text != "" {
			all[d.Sites[i].Folder] = text
		}
	}
	return all, nil
}

// usual are the words of a column at most sites that have it, if it has nothing else and they are few.
func (c *column) usual() (levels []string) {
	sites := map[string]int{}
	for _, p := range c.at {
		if p != nil {
			for _, w := range p.Words {
				sites[w.Text]++
			}
		}
	}
	for _, word := range slices.Sorted(maps.Keys(sites)) {
		if 2*sites[word] > len(c.sites()) {
			levels = append(levels, word)
		}
	}
	if len(levels) < 2 || len(levels) > maxOutcome || c.Numbers > 0 {
		return nil
	}
	return levels
}

// shape is a view as one site has it.
type shape struct {
	name, file string
	columns    []string
}

// shapes are the views of a site, in order.
func (s *site) shapes() (all []shape) {
	for _, p := range s.profiles {
		if p.View == "" {
			continue
		}
		if n := len(all); n == 0 || all[n-1].name != p.View {
			all = append(all, shape{name: p.View, file: p.File})
		}
		all[len(all)-1].columns = append(all[len(all)-1].columns, p.Name)
	}
	return all
}

// renamed is how to call a view otherwise.
func (v *shape) renamed(to string) string {
	folder, base := filepath.Split(v.file)
	if end, ok := strings.CutPrefix(base, "view_"+v.name); ok {
		return fmt.Sprintf("mv %s %s", quote(v.file), quote(filepath.Join(folder, "view_"+to+end)))
	}
	return fmt.Sprintf("write %s in the column view, or as the view's name in the mapping", to)
}

// unfitNames are views and columns whose names no plan can have.
func (d *Draft) unfitNames() (wrong problem.List) {
	for i := range d.Sites {
		for _, v := range d.Sites[i].shapes() {
			if !study.IsView(v.name) {
				wrong.Add(problem.Problem{File: v.file, What: fmt.Sprintf("%q cannot be the name of a view", v.name),
					Hint: "a name has letters, digits, hyphens and underscores, at most 40, and begins with a letter " +
						"or digit\n" + v.renamed(viewName(v.name))})
			}
			for _, name := range v.columns {
				if !study.IsLabel(name) {
					short := string([]rune(name)[:min(len([]rune(name)), 40)])
					wrong.Add(problem.Problem{File: v.file, What: fmt.Sprintf("%+q cannot be the name of a column",
						short),
						Hint: "rename it; a name has characters that can be printed, and at most 200 bytes"})
				}
			}
		}
	}
	return wrong
}

// sameViews are views that are called differently at different sites and are the same: by
// their names but for capitals and separators, or since most of their columns are the same.
func (d *Draft) sameViews() (wrong problem.List) {
	at := map[string]map[int]shape{} // by name and site
	var order []string
	for i := range d.Sites {
		for _, v := range d.Sites[i].shapes() {
			if at[v.name] == nil {
				at[v.name], order = map[int]shape{}, append(order, v.name)
			}
			at[v.name][i] = v
		}
	}
	// What most sites say is right; among equals, what comes first.
	slices.SortStableFunc(order, func(a, b string) int { return cmp.Compare(len(at[b]), len(at[a])) })
	for k, right := range order {
		for _, other := range order[k+1:] {
			wrong = append(wrong, d.sameView(at[right], at[other])...)
		}
	}
	return wrong
}

// several says whether a site has two or more views with columns of this one.
func (d *Draft) several(site int, w *shape) bool {
	return len(slices.DeleteFunc(d.Sites[site].shapes(), func(v shape) bool { return v.shared(w) == 0 })) > 1
}

// shared is how many columns both have, in whatever spelling.
func (v *shape) shared(w *shape) int {
	return len(slices.DeleteFunc(slices.Clone(v.columns), func(name string) bool {
		return !slices.ContainsFunc(w.columns, func(s string) bool { return problem.Key(s) == problem.Key(name) })
	}))
}

// sameView says of each site that has the other view that it is the right one.
func (d *Draft) sameView(right, other map[int]shape) (wrong problem.List) {
	for i := range d.Sites {
		v, ok := other[i]
		if _, both := right[i]; !ok || both {
			continue
		}
		for j := range d.Sites {
			w, ok := right[j]
			if _, both := other[j]; !ok || both {
				continue
			}
			shared := v.shared(&w)
			p := problem.Problem{File: v.file, Hint: v.renamed(w.name)}
			switch {
			case shared == len(v.columns) && shared == len(w.columns):
				p.What = fmt.Sprintf("%s has the view %s, whose columns are those of view %s at %s", d.Sites[i].Name,
					v.name, w.name, d.Sites[j].Name)
			case shared > 0 && 2*shared >= min(len(v.columns), len(w.columns)):
				p.What = fmt.Sprintf("%s has the view %s, which shares %s with view %s at %s", d.Sites[i].Name, v.name,
					plural(shared, "column"), w.name, d.Sites[j].Name)
				p.Hint += "\nor, if they are different views, give their columns different names"
			case problem.Key(v.name) == problem.Key(w.name):
				p.What = fmt.Sprintf("%s has the view %s, and %s has the view %s", d.Sites[i].Name, v.name,
					d.Sites[j].Name, w.name)
			default:
				continue
			}
			switch {
			case d.several(i, &w):
				p.Hint = fmt.Sprintf("%s has in several views what %s has in one: give %[2]s as many views, in its "+
					"mapping.yaml", d.Sites[i].Name, d.Sites[j].Name)
			case len(other) == len(right):
				p.Hint += "\nor " + w.renamed(v.name)
			}
			wrong.Add(p)
			break
		}
	}
	return wrong
}

// spelledAlike are columns whose names differ between sites in capitals and separators.
func (d *Draft) spelledAlike() problem.List {
	var all grouped
	groups := map[[2]string][]*column{}
	for _, c := range d.columns {
		key := [2]string{c.View, problem.Key(c.Name)}
		groups[key] = append(groups[key], c)
	}
	for _, c := range d.columns {
		group := groups[[2]string{c.View, problem.Key(c.Name)}]
		if group[0] != c || len(group) == 1 {
			continue
		}
		right := slices.MaxFunc(group, (*column).usage)
		for _, other := range group {
			for _, i := range other.sites() {
				if other != right && right.at[i] == nil { // else both are columns of this site
					has, writes := problem.Spelt(other.Name, right.Name)
					all.add(other.at[i].File, other.Name, problem.Problem{File: other.at[i].File, Where: other.where(),
						What: fmt.Sprintf("%s has %s, and %s has %s", d.Sites[i].Name, other.Name,
							d.Sites[right.sites()[0]].Name, right.Name),
						Hint: fmt.Sprintf("rename the column %s to %s, so that all sites write it the same way", has,
							writes)})
				}
			}
		}
	}
	return all.list()
}

// usage compares by how many sites name a column so and, where as many do, by how little the name has that may be there
// unseen: other letters than those of keyboards everywhere, and accents and ligatures as characters of their own.
func (c *column) usage(other *column) int {
	odd := func(name string) (n int) {
		if !norm.NFKC.IsNormalString(name) {
			n++
		}
		for i := range len(name) {
			n += int(name[i] >> 7)
		}
		return n
	}
	return cmp.Or(cmp.Compare(len(c.sites()), len(other.sites())), cmp.Compare(odd(other.Name), odd(c.Name)))
}

// sites are the places of the sites that have a column.
func (c *column) sites() (all []int) {
	for i, p := range c.at {
		if p != nil {
			all = append(all, i)
		}
	}
	return all
}

// writtenOtherwise are columns of numbers that some site writes in another spelling.
func (d *Draft) writtenOtherwise() problem.List {
	var all grouped
	for _, c := range d.columns {
		levels, _ := c.levels(d.Missing)
		many := c.Many || len(c.words) > maxOutcome || len(levels) < 2 // for a category
		var words int64
		for _, p := range c.at {
			if p == nil {
				continue
			}
			for _, w := range p.Words {
				if w.What == "" && w.Cells > 0 && c.View != "" && !absent(w.Text) &&
					!slices.Contains(d.Missing, w.Text) {
					words += w.Cells
				}
			}
		}
		// Columns of subjects, and columns without a plain number, may be categories: 10 mg and 20 mg.
		if c.Otherwise == 0 || c.Numbers+c.Otherwise <= words || c.View == "" && !many {
			continue
		}
		for i, p := range c.at {
			if p == nil || p.Otherwise == 0 || c.Numbers == 0 && !many && !strings.Contains(p.First.What, "comma") {
				continue
			}
			what := fmt.Sprintf("%q %s", p.First.Text, p.First.What)
			if p.Otherwise > 1 {
				what += fmt.Sprintf("; so it is in %d of %d cells at %s", p.Otherwise, p.Otherwise+p.Numbers,
					d.Sites[i].Name)
			}
			if sound := d.sound(c); len(sound) > 0 {
				what += ", and in none at " + few(sound)
			}
			all.add(p.File, c.Name, problem.Problem{File: p.File, Line: p.First.Line, Where: c.where() + ", column " +
				c.Name, What: what,
				Hint: p.First.Hint + "\nor leave the column out of the plan: --leave-out " + quote(c.Name)})
		}
	}
	return all.list()
}

// sound are the sites that write a column as plain numbers.
func (d *Draft) sound(c *column) (names []string) {
	for i, p := range c.at {
		if p != nil && p.Numbers > 0 && p.Otherwise == 0 {
			names = append(names, d.Sites[i].Name)
		}
	}
	return names
}

// grouped gathers problems that are alike: the first of each file in full, and the names of
// the columns that the others are about.
type grouped struct {
	order []string
	first map[string]problem.Problem
	more  map[string][]string
}

func (g *grouped) add(file, column string, p problem.Problem) {
	if g.first == nil {
		g.first, g.more = map[string]problem.Problem{}, map[string][]string{}
	}
	if _, known := g.first[file]; known {
		g.more[file] = append(g.more[file], column)
		return
	}
	g.order, g.first[file] = append(g.order, file), p
}

func (g *grouped) list() (list problem.List) {
	for _, file := range g.order {
		p := g.first[file]
		if more := g.more[file]; len(more) > 0 {
			p.Hint = fmt.Sprintf("the same in %s of this file: %s\n", plural(len(more), "more column"), few(more)) +
				p.Hint
		}
		list.Add(p)
	}
	return list
}

// absentColumns says which columns some site does not have that has their view.
func (d *Draft) absentColumns() {
	type group struct{ where, parted string }
	var order []group
	columns := map[group][]*column{}
	for _, c := range d.columns {
		yes, no := d.has(c)
		if len(no) == 0 {
			continue
		}
		g := group{c.where(), parted(yes, no)}
		if columns[g] == nil {
			order = append(order, g)
		}
		columns[g] = append(columns[g], c)
	}
	for _, g := range order {
		var lost, near []string
		for _, c := range columns[g] {
			lost = append(lost, c.Name)
			near = append(near, d.nearest(c)...)
		}
		who := strings.ReplaceAll(g.parted, " it,", " them,")
		p := problem.Problem{Where: g.where, What: fmt.Sprintf("%s are left out: %s", plural(len(lost), "column")+" ("+
			few(lost)+")", who)}
		if len(lost) == 1 {
			p.What = fmt.Sprintf("%s is left out: %s", lost[0], g.parted)
		}
		if len(near) > 0 {
			p.Hint = few(near) + "\n"
		}
		p.Hint += "spell a column the same at all sites; a site that did not measure it adds it with empty cells"
		d.Said.Add(p)
	}
}

// nearest asks whether a column is one of another site that is spelled much like it.
func (d *Draft) nearest(c *column) (questions []string) {
	for i := range d.Sites {
		if c.at[i] != nil || !d.hasView(i, c.View) {
			continue
		}
		var others []string
		for _, o := range d.columns {
			if yes, no := d.has(o); o.View == c.View && o.at[i] != nil && len(no) > 0 && len(yes) <= len(c.sites()) {
				others = append(others, o.Name)
			}
		}
		near := problem.Nearest(c.Name, others)
		for _, o := range others {
			if near == "" && problem.Key(bare(o)) == problem.Key(bare(c.Name)) {
				near = o
			}
		}
		if near != "" {
			return []string{fmt.Sprintf("is %s the column %s of %s?", c.Name, near, d.Sites[i].Name)}
		}
	}
	return nil
}

// bare is a name without what stands in brackets behind it, such as a unit.
func bare(name string) string {
	before, _, _ := strings.Cut(name, "(")
	before, _, _ = strings.Cut(before, "[")
	return before
}

// compareLevels says where sites write the levels of the outcome differently: it has too many classes.
func (d *Draft) compareLevels() (wrong problem.List) {
	if d.Outcome == nil {
		return nil
	}
	c := d.subject(d.Outcome.Column)
	levels, _ := c.levels(d.Missing)
	var sites []string
	var at [][]dataset.Level
	for _, i := range c.sites() {
		var own []dataset.Level
		for _, w := range c.at[i].Words {
			if slices.Contains(levels, w.Text) {
				own = append(own, dataset.Level{Name: w.Text, Subjects: w.Cells})
			}
		}
		sites, at = append(sites, d.Sites[i].Name), append(at, own)
	}
	if what, hint, sure := dataset.LevelsDiffer(sites, at); sure && !c.Many && len(c.words) <= maxLevels {
		wrong.Add(problem.Problem{Where: c.where() + ", column " + c.Name, What: what, Hint: hint})
	}
	return wrong
}

// lostViews are views of which no feature is left.
func (d *Draft) lostViews() (wrong problem.List) {
	var order []string
	reasons := map[string][]leftOut{}
	for _, c := range d.columns {
		if c.View == "" || slices.ContainsFunc(d.Views, func(v view) bool { return v.Name == c.View }) {
			continue
		}
		if reasons[c.View] == nil {
			order = append(order, c.View)
		}
		for _, l := range d.LeftOut {
			if l.View == c.View && l.Column == c.Name {
				reasons[c.View] = append(reasons[c.View], l)
			}
		}
	}
	for _, name := range order {
		p := problem.Problem{Where: "view " + name, What: "no feature of it is left, and a plan must not lose a view"}
		for _, line := range omitted(reasons[name]) {
			p.Hint += line + "\n"
		}
		p.Hint += "mend the data, or leave the view out: --leave-out " + name
		if d.Method == "factors" && strings.Contains(p.Hint, "it is a category") {
			p.Hint += "\ncategories are features where an outcome is predicted: --outcome COLUMN"
		}
		wrong.Add(p)
	}
	return wrong
}

// Omitted says what is not in the plan and why, in lines.
func (d *Draft) Omitted() []string { return omitted(d.LeftOut) }

func omitted(all []leftOut) (lines []string) {
	type reason struct{ view, why string }
	var order []reason
	columns := map[reason][]string{}
	for _, l := range all {
		r := reason{l.View, l.Why}
		if columns[r] == nil {
			order = append(order, r)
		}
		columns[r] = append(columns[r], oneLine(l.Column))
	}
	for _, r := range order {
		where := "the subjects"
		if r.view != "" {
			where = "view " + r.view
		}
		lines = append(lines, fmt.Sprintf("left out of %s: %s: %s", where, few(columns[r]), oneLine(r.why)))
	}
	return lines
}
