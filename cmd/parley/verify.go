package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"parley/dataset"
	"parley/engine/local"
	"parley/internal/vectors"
	"parley/judge/conformance"
	"parley/method"
	"parley/methods/pvi/verify"
	"parley/privacy/account"
	"parley/study"
)

// verifiers is every family of test vectors that this program knows: the
// accountant's, those of partitioned variational
// inference, and those of the other methods that have any. Data that vectors refer
// to are looked for in the folders.
func verifiers(folders []string) []conformance.Verifier {
	list := []conformance.Verifier{
		{Prefix: account.VectorSchema, Verify: account.Verify},
		{Prefix: verify.Schema, Verify: func(file []byte) ([]vectors.Check, error) {
			return verify.Vectors(file, verify.Means{
				Open: func(name string) (io.ReadCloser, error) { return openFirst(folders, name) },
				Run:  inMemory,
			})
		}},
	}
	for _, m := range methods {
		if v, ok := m.(method.Verifier); ok {
			list = append(list, conformance.Verifier{Prefix: v.SchemaPrefix(), Verify: v.Verify})
		}
	}
	return list
}

// inMemory runs the studies that test vectors are of.
func inMemory(p *study.Plan, rows map[string]dataset.Source) (*method.Result, error) {
	out, err := local.Run(context.Background(), local.Config{Plan: p, Methods: methods, Data: rows})
	if err != nil {
		return nil, err
	}
	return out.Result, nil
}

// openFirst opens a file in the first of the folders that has it.
func openFirst(folders []string, name string) (f io.ReadCloser, err error) {
	for _, dir := range folders {
		if f, err = os.Open(filepath.Join(dir, name)); err == nil {
			return f, nil
		}
	}
	return nil, err
}

func verifyCommand() *cobra.Command {
	var asJSON bool
	var data string
	cmd := &cobra.Command{
		Use:   "verify DIR",
		Short: "Check this installation against published test vectors",
		Long: "Runs every test-vector file (JSON with a \"schema\") in a folder through the installed program\n" +
			"and prints a table of agreement. Exits with 1 on any disagreement, on a schema version that\n" +
			"is not known, and when nothing was recognised.",
		Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, a []string) error {
			folders := []string{filepath.Join(a[0], "..", "..", "data", "adult")}
			if data != "" {
				folders = []string{data}
			}
			report, err := conformance.Run(os.DirFS(a[0]), verifiers(folders))
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
	cmd.Flags().StringVar(&data, "data", "", "folder of the Adult data, which pvi/adult-exact needs (default DIR/../../data/adult)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the agreement of every entry as JSON")
	return cmd
}
