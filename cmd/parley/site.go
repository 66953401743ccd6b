package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"parley/privacy/ledger"
	"parley/privacy/policy"
	"parley/problem"
	"parley/report"
	"parley/sitestore"
)

func siteCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "site", Short: "Take part in studies as a site"}
	ledger := &cobra.Command{Use: "ledger", Short: "Show what a site has ever been charged"}
	ledger.AddCommand(ledgerShowCommand(), ledgerVerifyCommand(), ledgerExportCommand())
	policies := &cobra.Command{Use: "policy", Short: "Write and check what a site allows"}
	policies.AddCommand(policyCheckCommand(), policyInitCommand())
	cmd.AddCommand(siteJoinCommand(), siteDataCommand(), sitePendingCommand(), siteShowCommand(), siteApproveCommand(), siteRefuseCommand(), siteServeCommand(),
		siteStatusCommand(), siteWatchCommand(), siteResultsCommand(), siteGoOnCommand(), siteBackupCommand(), siteDoctorCommand(), logCommand("the site"), ledger, policies)
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
