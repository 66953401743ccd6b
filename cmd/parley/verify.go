package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"parley/conformance"
	"parley/method"
	"parley/privacy/account"
)

// verifiers is every family of test vectors that this program knows: the
// accountant's, and those of the methods that have any.
func verifiers() []conformance.Verifier {
	list := []conformance.Verifier{{Prefix: account.VectorSchema, Verify: account.Verify}}
	for _, m := range methods {
		if v, ok := m.(method.Verifier); ok {
			list = append(list, conformance.Verifier{Prefix: v.SchemaPrefix(), Verify: v.Verify})
		}
	}
	return list
}

func verifyCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "verify DIR",
		Short: "Check this installation against published test vectors",
		Long: "Runs every test-vector file (JSON with a \"schema\") in a folder through the installed program\n" +
			"and prints a table of agreement. Exits with 1 on any disagreement, on a schema version that\n" +
			"is not known, and when nothing was recognised.",
		Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, a []string) error {
			report, err := conformance.Run(os.DirFS(a[0]), verifiers())
			if err != nil {
				return fmt.Errorf("verifying %s: %w", a[0], err)
			}
			if asJSON {
				out := json.NewEncoder(cmd.OutOrStdout())
				out.SetIndent("", "  ")
				err = out.Encode(report)
			} else {
				err = report.Print(cmd.OutOrStdout())
			}
			if err == nil && !report.OK {
				err = errors.New("this installation does not agree with the test vectors")
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the agreement of every entry as JSON")
	return cmd
}
