package main

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"parley/engine/local"
	"parley/method"
	"parley/privacy"
	"parley/privacy/ledger"
	"parley/privacy/policy"
	"parley/problem"
	"parley/sitestore"
	"parley/study"
)

// admission is what the flags of `site policy check` say of the sites.
type admission struct {
	site, store string
	subjects    int
}

func policyCheckCommand() *cobra.Command {
	var q admission
	var as form
	cmd := &cobra.Command{
		Use:   "check POLICY [PLAN]",
		Short: "Check a policy, alone or against a plan",
		Long: "Check a policy. With a plan, also show whether each site would take part, what it would cost and\n" +
			"what would be left.",
		RunE: func(cmd *cobra.Command, a []string) error {
			rules, err := policy.Load(a[0])
			if err != nil {
				return err
			}
			var sites []*ledger.Admission
			if len(a) > 1 {
				if sites, err = q.of(cmd.Context(), rules, a[1]); err != nil {
					return err
				}
			} else if q != (admission{}) {
				return &usageError{fmt.Errorf("--site, --subjects and --store belong to a plan")}
			}
			checked := struct {
				Policy policy.Policy       `json:"policy"`
				Sites  []*ledger.Admission `json:"sites,omitempty"`
			}{rules, sites}
			if err := as.object(cmd, checked, func(w io.Writer) error {
				fmt.Fprintf(w, "policy %s is in order\n", a[0])
				if len(sites) == 0 {
					return nil
				}
				return ledger.PrintAdmissions(w, sites)
			}); err != nil {
				return err
			}
			return refusals(sites, a[0]).Err()
		},
	}
	f := cmd.Flags()
	f.StringVar(&q.site, "site", "", "the site that asks (default that of the policy, or all of the plan)")
	f.IntVar(&q.subjects, "subjects", 0, "rows at the site (default counted in the data that the plan names)")
	f.StringVar(&q.store, "store", "", "the site's store, or a folder of stores (default no earlier charges)")
	return as.flag(cmd, "print the policy, and the sites, as one JSON object")
}

// of asks for every site that the flags mean.
func (q admission) of(ctx context.Context, rules policy.Policy, path string) ([]*ledger.Admission, error) {
	plan, cost, err := loadPlan(path)
	if err != nil {
		return nil, err
	}
	sites := plan.Sites
	switch {
	case q.site != "" && !slices.Contains(sites, q.site):
		return nil, problem.Problem{File: path, Where: "sites", What: fmt.Sprintf("%q is not a site of the plan", q.site), Hint: problem.DidYouMean(q.site, sites, "one of "+problem.Names(sites))}
	case q.site != "":
		sites = []string{q.site}
	case rules.Site != "" && slices.Contains(sites, rules.Site):
		sites = []string{rules.Site}
	}
	count, err := q.counter(ctx, plan)
	if err != nil {
		return nil, err
	}
	var list []*ledger.Admission
	for _, site := range sites {
		m, _ := methods.Lookup(plan.Method.Name) // the plan was checked
		requests, err := method.ForPlan(m, plan).Requests(plan, site)
		if err != nil {
			return nil, fmt.Errorf("site %s: %w", site, err)
		}
		s, err := privacy.StudyOf(plan, site, requests)
		if err != nil {
			return nil, err
		}
		if s.Subjects, err = count(site); err != nil {
			return nil, err
		}
		charged, err := q.ledger(site)
		if err != nil {
			return nil, err
		}
		a, err := charged.Admits(rules, s, cost.Delta(), privacy.Requests(requests)...)
		if err != nil {
			return nil, fmt.Errorf("site %s: %w", site, err)
		}
		list = append(list, a)
	}
	return list, nil
}

// counter returns what counts the rows of a site.
func (q admission) counter(ctx context.Context, plan *study.Plan) (func(site string) (int, error), error) {
	if q.subjects > 0 || plan.Local == nil {
		return func(string) (int, error) { return q.subjects, nil }, nil
	}
	plan.Local.Policy = "" // the one in question stands in its place
	binding, err := local.Bind(ctx, plan, nil)
	if err != nil {
		return nil, err
	}
	return func(site string) (n int, err error) {
		for _, err := range binding.Data[site].Rows(ctx) {
			if err != nil {
				return 0, fmt.Errorf("counting subjects of site %s: %w", site, err)
			}
			n++
		}
		return n, nil
	}, nil
}

// ledger reads what has been charged; nothing without a store.
func (q admission) ledger(site string) (charged *ledger.Ledger, err error) {
	if q.store == "" {
		return &ledger.Ledger{}, nil
	}
	err = look(q.store, site, func(_ string, s *sitestore.Store) error {
		charged, err = ledger.Read(s)
		return err
	})
	return charged, err
}
