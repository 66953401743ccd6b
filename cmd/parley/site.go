package main

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"parley/dataset"
	"parley/engine/host"
	"parley/engine/local"
	"parley/method"
	"parley/privacy"
	"parley/privacy/ledger"
	"parley/privacy/policy"
	"parley/problem"
	"parley/report"
	"parley/sitestore"
	"parley/study"
)

func siteCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "site", Short: "Take part in studies as a site"}
	ledger := &cobra.Command{Use: "ledger", Short: "Show what a site has ever been charged"}
	ledger.AddCommand(ledgerShowCommand(), ledgerVerifyCommand(), ledgerExportCommand())
	policies := &cobra.Command{Use: "policy", Short: "Write and check what a site allows"}
	policies.AddCommand(policyCheckCommand(), policyInitCommand())
	cmd.AddCommand(siteJoinCommand(), siteDataCommand(), sitePendingCommand(), siteShowCommand(), siteApproveCommand(),
		siteRefuseCommand(), siteServeCommand(),
		siteStatusCommand(), siteWatchCommand(), siteResultsCommand(), siteGoOnCommand(), siteBackupCommand(),
		siteDoctorCommand(), logCommand("the site"), ledger, policies)
	return cmd
}

const storeHelp = "STORE is a site's store (site.db), a folder of stores, or a run's results; it is only read."

// look hands over the store of a site, for reading.
func look(path, site string, read func(file string, s *sitestore.Store) error) error {
	file, err := report.FindStore(path, site)
	if err != nil {
		return err
	}
	return sitestore.Look(file, func(s *sitestore.Store) error { return read(file, s) })
}

func siteFlag(cmd *cobra.Command, site *string) {
	cmd.Flags().StringVar(site, "site", "", "the site, where there are several stores")
}

func deltaFlag(cmd *cobra.Command, delta *float64) {
	cmd.Flags().Float64Var(delta, "delta", 1e-5, "δ to count at where no guarantee names one")
}

func ledgerShowCommand() *cobra.Command {
	var site, policyFile string
	var delta float64
	var as form
	cmd := &cobra.Command{
		Use:   "show STORE",
		Short: "List every charge, and what is left",
		Long: "List every charge, what they cost together, and what is left of each promise.\n" +
			storeHelp,
		RunE: func(cmd *cobra.Command, a []string) error {
			var rules *policy.Policy
			if policyFile != "" {
				p, err := policy.Load(policyFile)
				if err != nil {
					return err
				}
				rules = &p
			}
			return look(a[0], site, func(_ string, s *sitestore.Store) error {
				charged, err := ledger.Read(s)
				if err != nil {
					return err
				}
				view, err := charged.Look(delta, rules)
				if err != nil {
					return err
				}
				return as.object(cmd, view, view.Text)
			})
		},
	}
	siteFlag(cmd, &site)
	deltaFlag(cmd, &delta)
	cmd.Flags().StringVar(&policyFile, "policy", "", "policy file: also show what is left of its limits")
	return as.flag(cmd, "print everything as one JSON object")
}

func ledgerVerifyCommand() *cobra.Command {
	var site string
	var as form
	cmd := &cobra.Command{
		Use:   "verify STORE",
		Short: "Check that the ledger is whole",
		Long: "Check the hashes of the ledger and every stored release against its charge. Keep the last hash\n" +
			"elsewhere, because the owner of the machine could forge a consistent ledger.\n" +
			storeHelp,
		RunE: func(cmd *cobra.Command, a []string) error {
			return look(a[0], site, func(file string, s *sitestore.Store) error {
				found, err := ledger.Verify(s)
				if err != nil {
					return fmt.Errorf("%s does not hold: %w", file, err)
				}
				return as.object(cmd, found, func(w io.Writer) error {
					fmt.Fprintf(w, "%s is whole: %d charges for %d releases, of which %d are stored (%d bytes)\n",
						file, found.Lines, found.Releases, found.Stored, found.Bytes)
					if found.Head != "" {
						fmt.Fprintf(w, "last hash %s\n", found.Head)
					}
					return nil
				})
			})
		},
	}
	siteFlag(cmd, &site)
	return as.flag(cmd, "print what was found as JSON")
}

func ledgerExportCommand() *cobra.Command {
	var site, format string
	var delta float64
	cmd := &cobra.Command{
		Use:   "export STORE",
		Short: "Write every charge for an auditor",
		Long: "Write every charge for an auditor, without anything of what was released.\n" +
			storeHelp,
		RunE: func(cmd *cobra.Command, a []string) error {
			if format != "csv" && format != "json" {
				return &usageError{fmt.Errorf("--format %s is not known\n  hint: csv or json", format)}
			}
			return look(a[0], site, func(_ string, s *sitestore.Store) error {
				records, err := ledger.Records(s, delta)
				if err != nil {
					return err
				}
				if format == "csv" {
					return ledger.WriteRecords(cmd.OutOrStdout(), records)
				}
				return form{json: true}.object(cmd, struct {
					Format  string          `json:"format"`
					Entries []ledger.Record `json:"entries"`
				}{"parley/ledger/1", records}, nil)
			})
		},
	}
	siteFlag(cmd, &site)
	deltaFlag(cmd, &delta)
	cmd.Flags().StringVar(&format, "format", "csv", "csv (a row for each noised sum) or json")
	return cmd
}

func policyInitCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "init",
		Short: "Print the default policy, with comments, to begin with",
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(cmd.OutOrStdout(), policy.DefaultText)
			return err
		},
	}
}

// refusals are the reasons of all sites.
func refusals(list []*ledger.Admission, file string) (wrong problem.List) {
	for _, a := range list {
		wrong = append(wrong, a.Problems(file)...)
	}
	return wrong
}

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
		return nil, problem.Problem{File: path, Where: "sites", What: fmt.Sprintf("%q is not a site of the plan",
			q.site), Hint: problem.DidYouMean(q.site, sites, "one of "+problem.Names(sites))}
	case q.site != "":
		sites = []string{q.site}
	case rules.Site != "" && slices.Contains(sites, rules.Site):
		sites = []string{rules.Site}
	}
	data, err := q.data(ctx, plan)
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
		h := &host.Host{Site: site, Methods: methods, Data: data[site]}
		if s.Subjects = q.subjects; h.Data != nil {
			c, err := dataset.Count(ctx, h.Data)
			if err != nil {
				return nil, fmt.Errorf("counting subjects of site %s: %w", site, err)
			}
			s.Subjects = c.Subjects
		}
		charged, err := q.ledger(site)
		if err != nil {
			return nil, err
		}
		a, err := h.Admits(charged, plan, s, rules, cost)
		if err != nil {
			return nil, fmt.Errorf("site %s: %w", site, err)
		}
		list = append(list, a)
	}
	return list, nil
}

// data is the sites' data, if they are to be counted and the plan says where they are.
func (q admission) data(ctx context.Context, plan *study.Plan) (map[string]dataset.Source, error) {
	if q.subjects > 0 || plan.Local == nil {
		return nil, nil
	}
	plan.Local.Policy = "" // the one in question stands in its place
	binding, err := local.Bind(ctx, plan, nil)
	if err != nil {
		return nil, err
	}
	return binding.Data, nil
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
