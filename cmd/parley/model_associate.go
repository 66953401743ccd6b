package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"parley/engine/host"
	"parley/figure"
	"parley/method"
	"parley/method/association"
	"parley/privacy/policy"
	"parley/problem"
	"parley/sitestore"
)

func modelAssociateCommand() *cobra.Command {
	var with []string
	var opts method.AssociateOptions
	share := output{flag: "--share"}
	var combine bool
	var private noisedShare
	var page accountPage
	var as form
	cmd := &cobra.Command{
		Use:   "associate MODEL DATA --with COLUMN | associate --combine TABLE TABLE...",
		Short: "Test each factor against subject columns",
		Long: "Test each factor against subject columns by least squares, with p values adjusted over all tests.\n" +
			"The answer is exact, so do not release it, unless --protocol makes it differentially private.",
		Args: func(cmd *cobra.Command, a []string) error {
			if combine && len(a) >= 2 {
				return nil
			}
			return asUsed(cmd, a)
		},
		RunE: func(cmd *cobra.Command, a []string) error {
			if combine {
				for _, name := range []string{"with", "category", "adjust", "share", "force", "protocol", "site", "store", "policy"} {
					if cmd.Flags().Changed(name) {
						return &usageError{fmt.Errorf("--%s does nothing with --combine\n  hint: it belongs to the command that made the tables", name)}
					}
				}
				return combineTables(cmd, a, &page, as)
			}
			if page.dir != "" {
				return &usageError{fmt.Errorf("--out belongs to --combine\n  hint: the site's own page in its results has the pictures of its own tests")}
			}
			if private.protocol != "" {
				for _, name := range []string{"with", "category", "adjust"} {
					if cmd.Flags().Changed(name) {
						return &usageError{fmt.Errorf("--%s does nothing with --protocol\n  hint: the protocol says which columns are tested and adjusted for", name)}
					}
				}
				private.site = opts.Site
				return private.release(cmd, a, &share, as)
			}
			if private != (noisedShare{}) {
				return &usageError{fmt.Errorf("--store and --policy belong to --protocol")}
			}
			adjusted := func(c string) bool { return slices.Contains(opts.Adjust, c) }
			if i := slices.IndexFunc(with, adjusted); i >= 0 {
				return &usageError{fmt.Errorf("column %s cannot be tested and adjusted for\n  hint: leave it out of --with or of --adjust", with[i])}
			}
			tested := slices.DeleteFunc(append(slices.Clone(with), opts.Categories...), adjusted)
			if len(tested) == 0 {
				return &usageError{fmt.Errorf("name a column of subjects.csv\n  hint: --with age, or --category group")}
			}
			opts.Tested = tested
			var columns []string
			for _, c := range append(tested, opts.Adjust...) {
				if !slices.Contains(columns, c) {
					columns = append(columns, c)
				}
			}
			if share.force && !cmd.Flags().Changed("share") {
				return &usageError{fmt.Errorf("--force does nothing without --share")}
			}
			return associate(cmd, a, columns, opts, &share, as)
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&with, "with", nil, "columns to test")
	f.StringSliceVar(&opts.Categories, "category", nil, "columns of codes to take as categories")
	f.StringSliceVar(&opts.Adjust, "adjust", nil, "columns to adjust every test for")
	f.StringVar(&share.path, "share", "", "also write a JSON table, without rows, to combine with other sites")
	f.BoolVar(&share.force, "force", false, forceUsage)
	f.StringVar(&private.protocol, "protocol", "", "make the table under differential privacy, as this YAML file says")
	f.StringVar(&opts.Site, "site", "", "site of the fit that the subjects are of")
	f.StringVar(&private.store, "store", "", "with --protocol: the site's store, whose ledger is charged")
	f.StringVar(&private.policy, "policy", "", "with --protocol: the site's policy")
	f.BoolVar(&combine, "combine", false, "pool the tables of several sites")
	page.flag(cmd)
	return as.flag(cmd, "print everything as JSON")
}

// associate tests at one site.
func associate(cmd *cobra.Command, a, columns []string, opts method.AssociateOptions, share *output, as form) error {
	if opts.Share = cmd.Flags().Changed("share"); opts.Share {
		if err := share.check(inputsOf(a)...); err != nil {
			return err
		}
	}
	m, data, notes, err := openUse[method.Associater](cmd.Context(), a, "associated with columns", "", columns...)
	if err != nil {
		return err
	}
	account, table, err := m.Associate(cmd.Context(), data, opts)
	if err != nil {
		return err
	}
	if table != nil {
		if err := writeTable(share, table); err != nil {
			return err
		}
		account.Notes.Add(problem.Problem{File: share.path, What: fmt.Sprintf("has exact estimates, and counts of subjects by level, none below %d; it has no rows and no noise. Of two tables of nearly the same subjects the difference tells of those who are in one alone", association.Minimum),
			Hint: "give it only to whoever may know this, and make one table of one selection of subjects"})
	}
	account.Notes = append(notes, account.Notes...)
	return printAccount(cmd, account, as)
}

func writeTable(share *output, table *association.Table) error {
	text, err := table.Encode()
	if err != nil {
		return err
	}
	return share.write(func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}

// noisedShare is where a table under differential privacy comes from.
type noisedShare struct{ protocol, site, store, policy string }

// release charges the site's ledger for a noised sum over its subjects, and writes the table
// that follows from it.
func (n *noisedShare) release(cmd *cobra.Command, a []string, share *output, as form) (err error) {
	if share.path == "" || n.site == "" || n.store == "" || n.policy == "" {
		return &usageError{fmt.Errorf("--protocol needs --share, --site, --store and --policy")}
	}
	if err := share.check(append(inputsOf(a), n.protocol, n.store, n.policy)...); err != nil {
		return err
	}
	text, err := os.ReadFile(n.protocol)
	if errors.Is(err, fs.ErrNotExist) {
		return problem.Problem{File: n.protocol, What: "there is no such file"}
	} else if err != nil {
		return err
	}
	p, err := association.ParseProtocol(n.protocol, text)
	if err != nil {
		return err
	}
	rules, err := policy.Load(n.policy)
	if err != nil {
		return err
	}
	m, data, notes, err := openUse[method.NoisedAssociater](cmd.Context(), a, "associated with columns", p.Privacy.Person, p.Names()...)
	if err != nil {
		return err
	}
	if _, err := os.Stat(n.store); errors.Is(err, fs.ErrNotExist) {
		notes.Add(problem.Problem{File: n.store, What: "there was no store, and one with an empty ledger was made", Hint: "what the site has released before counts only in the store that it was charged to: if there is one, name it"})
	}
	store, err := sitestore.Open(n.store)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	h := &host.Host{Site: n.site, Methods: methods, Data: data, Store: store, Policy: rules}
	made, err := m.ReleaseAssociations(p, n.site)
	if err != nil {
		return err
	}
	noised, err := h.Once(cmd.Context(), made.Study, made.Contribution)
	if err != nil {
		return err
	}
	table, more := made.Table(n.site, noised)
	if err := writeTable(share, table); err != nil {
		return err
	}
	g := table.Privacy
	account := &method.Account{Value: table, Tables: []figure.Table{table.Figure()}, Notes: append(append(notes, more...), problem.Problem{
		File: share.path, What: fmt.Sprintf("follows from noised sums alone, which the ledger of %s was charged for once: ε %v at δ %v (%s), for one subject", n.store, g.Epsilon, g.Delta, g.Adjacency)})}
	account.Facts = []figure.Fact{{Name: "model", Value: fmt.Sprintf("%.12s of study %s", table.Model, table.Study)}, {Name: "adjusted for", Value: cmp.Or(strings.Join(table.Adjusted, ", "), "nothing")},
		{Name: "subjects, noised", Value: fmt.Sprintf("%d ± %.2g", table.Subjects, g.NoiseSD)}}
	return printAccount(cmd, account, as)
}

// combineTables pools tables of several sites.
func combineTables(cmd *cobra.Command, paths []string, page *accountPage, as form) error {
	if err := page.check(); err != nil {
		return err
	}
	var tables []*association.Table
	seen := map[string]string{}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return problem.Problem{File: path, What: "there is no such table", Hint: "parley model associate MODEL DATA --with COLUMN --share FILE.json writes one"}
		} else if err != nil {
			return err
		}
		if other, ok := seen[string(data)]; ok {
			return problem.Problem{File: path, What: "is the same table as " + other, Hint: "give each site's table once"}
		}
		seen[string(data)] = path
		t, err := association.Read(data)
		if p := (problem.Problem{}); errors.As(err, &p) {
			p.File = path
			return p
		} else if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		tables = append(tables, t)
	}
	list, notes, err := association.Combine(paths, tables)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return problem.Problem{What: "no two tables tell of the same column and factor", Hint: "let every site use the same --with and --category"}
	}
	account := combinedAccount(list)
	account.Facts = []figure.Fact{{Name: "model", Value: fmt.Sprintf("%.12s of study %s", tables[0].Model, tables[0].Study)}, {Name: "sites", Value: fmt.Sprint(len(tables))},
		{Name: "adjusted for", Value: cmp.Or(strings.Join(tables[0].Adjusted, ", "), "nothing")}}
	if tables[0].Privacy != nil {
		account.Facts = append(account.Facts, figure.Fact{Name: "privacy noise", Value: "in every table; standard errors and intervals count it"})
	}
	account.Notes = notes
	account.Value = map[string]any{"model_sha256": tables[0].Model, "study": tables[0].Study, "tables": paths, "adjusted_for": tables[0].Adjusted, "effects": list}
	if err := page.write("Factors and subject columns, over all sites", account); err != nil {
		return err
	}
	return printAccount(cmd, account, as)
}

// combinedAccount shows effects over all sites under both models.
func combinedAccount(list []association.Combined) *method.Account {
	columns := func(names ...string) []figure.Column {
		out := []figure.Column{{Name: "column"}, {Name: "effect"}, {Name: "factor", Format: figure.Count}}
		for _, name := range names {
			c := figure.Column{Name: name}
			switch name {
			case "sites", "subjects":
				c.Format = figure.Count
			case "I²":
				c.Format = figure.Percent
			}
			out = append(out, c)
		}
		return out
	}
	random := figure.Table{Title: "If the effect may differ between sites (random effects)",
		Caption: "The mean effect, in standard deviations of the factor. Variance between sites by DerSimonian and Laird; intervals of 95 % and p by Hartung and Knapp, with sites − 1 degrees of freedom, which with two or three sites is very little. Adjusted p is by Benjamini and Hochberg over all rows.",
		Columns: columns("sites", "subjects", "estimate", "low", "high", "p", "adjusted p")}
	common := figure.Table{Title: "If the effect is the same at all sites (common effect)",
		Caption: "Weighted by 1/variance, with normal intervals and p. Q tests whether the effect is the same everywhere; I² is the share of the estimates' variance that is between sites, and τ its standard deviation.",
		Columns: columns("estimate", "low", "high", "p", "adjusted p", "Q", "p of Q", "I²", "τ")}
	for _, c := range list {
		what := "slope"
		if c.Level != "" {
			what = c.Level + " − " + c.Reference
		}
		random.Add(c.Column, what, c.Factor, c.Sites, c.Subjects, c.Random.Estimate, c.Random.Low, c.Random.High, c.Random.P, c.RandomAdjusted)
		common.Add(c.Column, what, c.Factor, c.Common.Estimate, c.Common.Low, c.Common.High, c.Common.P, c.CommonAdjusted, c.Q, c.PQ, c.I2, math.Sqrt(c.Tau2))
	}
	return &method.Account{Figures: []figure.Figure{combinedPicture(list)}, Tables: []figure.Table{random, common}}
}

// combinedPicture shows how clear every effect on every factor is.
func combinedPicture(list []association.Combined) figure.Figure {
	const clearest = 6 // −log₁₀ p that has the darkest colour
	h := figure.Heatmap{Legend: "−log₁₀ of adjusted p, with the sign of the effect", Diverging: true, Reach: clearest,
		Facets: []figure.Facet{{Title: "Factor, common effect"}, {Title: "Factor, random effects"}}}
	factors := 0
	for _, c := range list {
		factors = max(factors, c.Factor)
	}
	for a := range factors {
		h.Columns = append(h.Columns, fmt.Sprint(a+1))
	}
	for _, c := range list {
		name := c.Column
		if c.Level != "" {
			name += ": " + c.Level + " − " + c.Reference
		}
		at := slices.Index(h.Rows, name)
		if at < 0 {
			at, h.Rows = len(h.Rows), append(h.Rows, name)
			for i := range h.Facets {
				h.Facets[i].Values = append(h.Facets[i].Values, slices.Repeat(figure.Numbers{math.NaN()}, factors))
			}
		}
		for i, x := range []struct{ p, estimate float64 }{{c.CommonAdjusted, c.Common.Estimate}, {c.RandomAdjusted, c.Random.Estimate}} {
			h.Facets[i].Values[at][c.Factor-1] = math.Copysign(-math.Log10(max(x.p, 1e-300)), x.estimate)
		}
	}
	return figure.Figure{ID: "associations", Title: "Which factors go with what is known of the subjects", Chart: h,
		Caption: "Common effect: if it is the same at all sites; random effects: if it may differ. The darker, the clearer: 1.3 is an adjusted p of 5 %, 3 is one in a thousand, and all beyond 6 looks the same. Blue effects are upwards, brown ones downwards. How large an effect is, the tables say. Hatched: fewer than two sites tell of it.",
		Alt:     "Heatmap of how clear the effect of each column on each factor is, over all sites, under two models."}
}
