package draft

import (
	"fmt"
	"path/filepath"
	"strings"

	"parley/study"
)

// YAML returns the plan with comments. Paths of data are written as relative to the
// folder of the plan where they can be.
func (d *Draft) YAML(folder string) []byte {
	var w strings.Builder
	fmt.Fprintf(&w, "# A first plan, made from the data. Read it, change what is wrong, and then run\n#   parley plan check --data PLAN\n#   parley run PLAN\n")
	fmt.Fprintf(&w, "parley: %d\nname: %s\n# question: What do you want to know? It stands at the head of the report.\n\n", study.Version, study.Quote(d.Name))
	d.writeSites(&w)
	if len(d.Missing) > 0 {
		fmt.Fprintf(&w, "# Cells that stand for a value that was not measured, beside empty ones, NA, NaN and null.\nmissing: %s\n\n", flow(d.Missing, code))
	}
	w.WriteString("views:\n")
	for _, v := range d.Views {
		d.writeView(&w, &v)
	}
	w.WriteString("\n")
	d.writeLeftOut(&w)
	if len(d.Subjects) > 0 {
		fmt.Fprintf(&w, "# Columns of the subjects tables that describe results; they are never features.\nsubjects: %s\n\n", flow(d.Subjects, study.Quote))
	}
	if d.Incomplete > 0 {
		fmt.Fprintf(&w, "# %s without a value of %s: they take no part.\ncomplete_cases: %s\n\n", plural(d.Incomplete, "subject"), oneLine(d.Outcome.Column), flow([]string{d.Outcome.Column}, study.Quote))
	}
	d.writeMethod(&w)
	w.WriteString("# Without protection what a site releases is exact, and can tell of single people. For\n# differential privacy give every feature a range that is known without looking at the data, and:\n" +
		"#   privacy: {protection: differential, unit: subject, adjacency: add-remove, total: {epsilon: 3, delta: 1e-5}}\nprivacy: {protection: none}\n\n")
	d.writeLocal(&w, folder)
	return []byte(w.String())
}

func (d *Draft) writeSites(w *strings.Builder) {
	var names []string
	for _, s := range d.Sites {
		names = append(names, s.Name)
	}
	if d.Data != "" {
		w.WriteString("# One data set was found: its subjects are spread over simulated sites, under local.\n")
	}
	fmt.Fprintf(w, "sites: %s\n", flow(names, study.Quote))
	for _, s := range d.Sites {
		if len(s.Lacks) > 0 {
			fmt.Fprintf(w, "# %s lacks the views: %s\n", s.Name, strings.Join(s.Lacks, ", "))
		}
	}
	w.WriteString("\n")
}

func (d *Draft) writeView(w *strings.Builder, v *view) {
	fmt.Fprintf(w, "  - name: %s\n    features:\n", study.Quote(v.Name))
	for _, f := range v.Features {
		parts := []string{"name: " + study.Quote(f.Name)}
		if f.Kind == study.Category {
			parts = append(parts, "kind: category", "levels: "+flow(f.Levels, study.Quote))
		}
		if f.Other != "" {
			parts = append(parts, "other: "+study.Quote(f.Other))
		}
		note := ""
		if len(f.Missing) > 0 {
			parts = append(parts, "missing: "+flow(f.Missing, func(c study.Code) string { return code(string(c)) }))
			note = "  # looks like a code for a missing value; take it out if it was measured"
		}
		if f.Kind == study.Number && d.mayBeKinds[f.Name] {
			note += "  # few whole numbers: if they stand for kinds, as a sex of 1 or 2, " + d.asKind()
		}
		if len(parts) == 1 {
			fmt.Fprintf(w, "      - %s%s\n", study.Quote(f.Name), note)
			continue
		}
		fmt.Fprintf(w, "      - {%s}%s\n", strings.Join(parts, ", "), note)
	}
}

// asKind is what to do with a category that is written in numbers.
func (d *Draft) asKind() string {
	if d.Method == "pvi" {
		return "add kind: category and levels: [...]"
	}
	return "take it out: " + d.Method + " models amounts"
}

func (d *Draft) writeLeftOut(w *strings.Builder) {
	if len(d.LeftOut) > 0 {
		w.WriteString("# Columns that are not in the plan:\n")
	}
	for _, l := range d.LeftOut {
		where := "subjects"
		if l.View != "" {
			where = "view " + l.View
		}
		fmt.Fprintf(w, "#   %s, %s: %s\n", where, oneLine(l.Column), oneLine(l.Why))
	}
	if len(d.LeftOut) > 0 {
		w.WriteString("\n")
	}
}

func (d *Draft) writeMethod(w *strings.Builder) {
	fmt.Fprintf(w, "# %s.\n", oneLine(d.Reason))
	if d.tooFew != "" {
		fmt.Fprintf(w, "# %s\n", strings.ReplaceAll(d.tooFew, "\n", "\n# "))
	}
	if d.survival != "" {
		fmt.Fprintf(w, "# If this is the time until an event that not everybody had:\n#   %s\n", oneLine(d.survival))
	}
	if d.Outcome != nil {
		outcome := "column: " + study.Quote(d.Outcome.Column)
		if len(d.Outcome.Levels) > 0 {
			outcome += ", levels: " + flow(d.Outcome.Levels, study.Quote)
		}
		fmt.Fprintf(w, "method:\n  name: %s\n  outcome: {%s}\n\n", d.Method, outcome)
		return
	}
	var names []string
	for _, c := range d.Candidates {
		names = append(names, oneLine(c.Column))
	}
	if len(names) > 0 {
		fmt.Fprintf(w, "# To predict one of these columns instead, begin again with --outcome: %s.\n", few(names))
	}
	fmt.Fprintf(w, "method:\n  name: %s\n  latent: select  # as many factors as the data support, or a number\n\n", d.Method)
}

func (d *Draft) writeLocal(w *strings.Builder, folder string) {
	w.WriteString("# Where this computer finds the data. It is no part of the plan that sites see.\nlocal:\n")
	if d.Data != "" {
		fmt.Fprintf(w, "  data: %s\n  split: {scenario: IID}\n", study.Quote(relative(folder, d.Data)))
		return
	}
	w.WriteString("  sites:\n")
	for _, s := range d.Sites {
		fmt.Fprintf(w, "    %s: %s\n", study.Quote(s.Name), study.Quote(relative(folder, s.Folder)))
	}
}

// relative returns the path as seen from a folder, or as it is if there is no such way.
func relative(folder, path string) string {
	from, err := filepath.Abs(folder)
	to, err2 := filepath.Abs(path)
	if err != nil || err2 != nil {
		return filepath.ToSlash(path)
	}
	short, err := filepath.Rel(from, to)
	if err != nil {
		return filepath.ToSlash(to)
	}
	return filepath.ToSlash(short)
}

// flow is a list in one line.
func flow[T any](list []T, write func(T) string) string {
	parts := make([]string, len(list))
	for i, x := range list {
		parts[i] = write(x)
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// code writes a code for missing values: a number as it is, anything else as text.
func code(s string) string {
	if strings.Trim(s, "-0123456789") == "" && strings.Trim(s, "-") != "" {
		return s
	}
	return study.Quote(s)
}

// oneLine keeps what comes from the data inside its comment.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 }), " ")
}
