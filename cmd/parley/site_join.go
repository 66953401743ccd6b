package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"parley/dataset"
	"parley/engine/host"
	"parley/federation"
	"parley/federation/site"
	"parley/internal/files"
	"parley/privacy/policy"
	"parley/problem"
)

func siteJoinCommand() *cobra.Command {
	var dir, data, policyFile, receipts string
	var yes, anew bool
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "join INVITATION",
		Short: "Join a coordinator by an invitation",
		Long:  "Make the site's folder with its keys, join the coordinator, and show and ask about each study.",
		RunE: func(cmd *cobra.Command, a []string) error {
			text, err := readLimited(a[0])
			if err != nil {
				return err
			}
			i, err := federation.ParseInvitation(text)
			if err != nil {
				return fmt.Errorf("%s: %w", a[0], err)
			}
			if dir == "" {
				dir = filepath.Join(filepath.Dir(a[0]), i.Site)
			}
			if !anew {
				if err := site.SameCoordinator(dir, i, methods); err != nil {
					return err
				}
			}
			var policyText []byte
			if policyFile != "" { // before anything is sent
				if _, err := policy.Load(policyFile); err != nil {
					return err
				}
				if policyText, err = os.ReadFile(policyFile); err != nil {
					return err
				}
			}
			out := cmd.OutOrStdout()
			say := sayOnce(cmd.ErrOrStderr())
			ctx, cancel := context.WithTimeout(cmd.Context(), wait)
			f, err := site.Join(ctx, dir, i, methods, say)
			cancel()
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "Site %s has joined; its folder is %s\n", f.Config.Site, f.Path)
			if old, err := os.ReadFile(f.PolicyPath()); policyText != nil && err == nil &&
				string(old) != string(policyText) {
				return problem.Problem{File: f.PolicyPath(), What: "the site has a policy already, and it was left " +
					"as it is", Hint: "change it there"}
			}
			if policyText != nil {
				if err := files.WriteOwn(f.PolicyPath(), policyText); err != nil {
					return err
				}
			}
			if data != "" {
				if err := f.SetData(data); err != nil {
					return err
				}
			}
			if receipts != "" {
				if err := f.SetReceipts(receipts); err != nil {
					return err
				}
			}
			return firstStudies(cmd, f, wait, yes, say)
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "the site's folder (default the site's name, beside the invitation)")
	cmd.Flags().StringVar(&data, "data", "", "where the site's rows are (default data in the folder)")
	cmd.Flags().StringVar(&policyFile, "policy", "", "policy file, copied to the folder (default policy.yaml there, "+
		"or the strict one)")
	cmd.Flags().StringVar(&receipts, "receipts", "", "file that notes how far the ledger has come, best on another "+
		"disk (default in the folder)")
	cmd.Flags().BoolVar(&yes, "yes", false, "approve what policy, ledger and data allow, without asking")
	cmd.Flags().BoolVar(&anew, "new-coordinator", false, "forget the keys for an earlier coordinator; the ledger "+
		"goes on")
	cmd.Flags().DurationVar(&wait, "wait", time.Minute, "how long to wait for the coordinator")
	return cmd
}

// sayOnce prints each line once: a connection that fails again says the same.
func sayOnce(w io.Writer) func(line string) {
	var mu sync.Mutex
	said := map[string]bool{}
	return func(line string) {
		mu.Lock()
		defer mu.Unlock()
		if !said[line] {
			said[line] = true
			fmt.Fprintln(w, line)
		}
	}
}

// readLimited reads an invitation, which is small.
func readLimited(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, 1<<20))
}

// firstStudies shows what is posted when a site has joined, and asks.
func firstStudies(cmd *cobra.Command, f *site.Folder, wait time.Duration, yes bool, say func(string)) error {
	out := cmd.OutOrStdout()
	ctx, cancel := context.WithTimeout(cmd.Context(), wait)
	err := f.WaitForStudies(ctx, say)
	cancel()
	if err == nil {
		err = cmd.Context().Err()
	}
	if err != nil {
		return err
	}
	list, err := f.Studies()
	if err != nil {
		return err
	}
	undecided := false
	for _, digest := range list {
		d, err := f.Decision(digest)
		if err != nil {
			return err
		}
		if d != nil {
			continue
		}
		v, err := preview(cmd.Context(), f, digest)
		if err != nil {
			return err
		}
		fmt.Fprintln(out)
		if err := v.Text(out); err != nil {
			return err
		}
		fmt.Fprintln(out)
		take := yes
		if v.TakesPart && !yes && terminal(cmd.InOrStdin()) {
			if take, err = ask(cmd.Context(), cmd.InOrStdin(), out, "Take part in study "+v.Name+"?"); err != nil {
				return err
			}
		}
		switch {
		case !v.TakesPart:
			undecided = true
			fmt.Fprintf(out, "It cannot be approved as things stand. To look again: parley site show %s %s\n",
				problem.Shell(f.Path), v.Name)
		case take:
			if err := f.Approve(cmd.Context(), digest, host.ByPerson); err != nil {
				return err
			}
			fmt.Fprintf(out, "Study %s is approved.\n", v.Name)
		default:
			undecided = true
			fmt.Fprintf(out, "To approve it: parley site approve %s %s\nTo refuse it:  parley site refuse "+
				"%[1]s %[2]s\n", problem.Shell(f.Path), v.Name)
		}
	}
	if len(list) == 0 {
		fmt.Fprintln(out, "The coordinator has posted no study yet. When it does: parley site pending "+
			problem.Shell(f.Path))
	}
	if undecided {
		fmt.Fprintln(out)
	}
	fmt.Fprintf(out, "\nNext:\n  parley site serve %s\n", problem.Shell(f.Path))
	return nil
}

// terminal says whether somebody can be asked.
func terminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}

// ask asks a person for a yes, until ctx ends: a signal is an answer, too.
func ask(ctx context.Context, in io.Reader, out io.Writer, question string) (bool, error) {
	a, err := askLine(ctx, in, out, question+" [y/N] ")
	return strings.EqualFold(a, "y") || strings.EqualFold(a, "yes"), err
}

// askLine asks a person for a line of text, which may be empty.
func askLine(ctx context.Context, in io.Reader, out io.Writer, question string) (string, error) {
	fmt.Fprint(out, question)
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(in).ReadString('\n')
		answer <- strings.TrimSpace(line)
	}()
	select {
	case a := <-answer:
		return a, nil
	case <-ctx.Done():
		fmt.Fprintln(out)
		return "", context.Cause(ctx)
	}
}

// preview is what a study would mean for a site.
func preview(ctx context.Context, f *site.Folder, digest string) (*host.Preview, error) {
	v, err := f.Preview(ctx, digest)
	if err != nil {
		return v, err
	}
	v.Coordinator = "the coordinator with key " + f.Coordinator.Name()
	if len(v.Problems) == 0 {
		return v, nil
	}
	p, err := f.Plan(digest)
	if err != nil {
		return v, err
	}
	// else the problems say why
	if text, err := dataset.ProposeMapping(ctx, f.DataPath(), p.Schema()); err == nil && text != "" {
		if path, err := writeMapping(f.DataPath(), text); err == nil {
			v.Problems = append(v.Problems, "if the site's names differ from the plan's: read what was written to "+
				path+", and make it "+dataset.MappingFile+" there")
		}
	}
	return v, nil
}

// siteStudyCommand is a command about a study in a site's folder.
func siteStudyCommand(use, short, long string, run func(cmd *cobra.Command, f *site.Folder,
	digest string) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Long: long,
		RunE: inSite(ofStudy(func(cmd *cobra.Command, f *site.Folder, digest string, _ []string) error {
			return run(cmd, f, digest)
		})),
	}
}

func siteShowCommand() *cobra.Command {
	var as form
	cmd := siteStudyCommand("show DIR STUDY", "Show what a study computes, reads, sends and costs",
		"Show what a study computes, reads, sends and costs, and whether policy, ledger and data allow it.",
		func(cmd *cobra.Command, f *site.Folder, digest string) error {
			v, err := preview(cmd.Context(), f, digest)
			if err != nil {
				return err
			}
			return as.object(cmd, v, func(w io.Writer) error { return printPreview(w, f, digest, v) })
		})
	return as.flag(cmd, "print it as one JSON object")
}

// printPreview says what a study would mean, and what somebody has decided already.
func printPreview(w io.Writer, f *site.Folder, digest string, v *host.Preview) error {
	if err := v.Text(w); err != nil {
		return err
	}
	d, err := f.Decision(digest)
	switch {
	case err != nil:
		return err
	case d == nil:
		fmt.Fprintf(w, "\nNobody has decided yet. To approve it: parley site approve %s %s\n", problem.Shell(f.Path),
			v.Name)
	case d.Approval != nil:
		fmt.Fprintf(w, "\nIt was approved by %s, %s.\n", d.Approval.By, d.At.Local().Format(time.DateTime))
	default:
		fmt.Fprintf(w, "\nIt was refused, %s: %s\n", d.At.Local().Format(time.DateTime), d.Refused)
	}
	return nil
}

func siteApproveCommand() *cobra.Command {
	return siteStudyCommand("approve DIR STUDY", "Let the site take part in a study",
		"Approve a study with the plan, coordinator, policy, data and method as they are now. A change asks again.",
		func(cmd *cobra.Command, f *site.Folder, digest string) error {
			if err := f.Approve(cmd.Context(), digest, host.ByPerson); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "study %.12s is approved\n", digest)
			if !f.Served() {
				fmt.Fprintf(cmd.OutOrStdout(), "\nNext:\n  parley site serve %s\n", problem.Shell(f.Path))
			}
			return nil
		})
}

func siteRefuseCommand() *cobra.Command {
	var reason string
	cmd := siteStudyCommand("refuse DIR STUDY", "Keep the site out of a study", "",
		func(cmd *cobra.Command, f *site.Folder, digest string) error {
			if err := f.Refuse(digest, reason); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "study %.12s is refused\n", digest)
			return nil
		})
	cmd.Flags().StringVar(&reason, "reason", "", "reason for the coordinator to read")
	return cmd
}

func siteGoOnCommand() *cobra.Command {
	return siteStudyCommand("go-on DIR STUDY", "Let a study go on with a store that has lost charges",
		"Let a study go on with an older or other store. Its lost charges are no longer counted, so bring the "+
			"right\nstore back if you can.",
		func(cmd *cobra.Command, f *site.Folder, digest string) error {
			if err := f.GoOn(digest); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "study %.12s goes on without what is lost\n", digest)
			return nil
		})
}

func siteDataCommand() *cobra.Command {
	return &cobra.Command{
		Use: "data DIR PATH", Short: "Set where the site's rows are",
		RunE: inSite(func(cmd *cobra.Command, f *site.Folder, a []string) error {
			if err := f.SetData(a[1]); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "the data of site %s are those in %s\n", f.Config.Site, f.DataPath())
			return nil
		}),
	}
}

func siteBackupCommand() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "backup DIR --out FOLDER",
		Short: "Copy what the site must not lose",
		Long:  "Copy keys, policy, store, studies and audit log as they are at one moment, served or not.",
		RunE: inSite(func(cmd *cobra.Command, f *site.Folder, a []string) error {
			if err := f.Backup(out); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s was copied to %s; keep it where only the site's people can read it\n",
				f.Path, out)
			return nil
		}),
	}
	cmd.Flags().StringVar(&out, "out", "", "folder to write, which must not exist")
	cmd.MarkFlagRequired("out")
	return cmd
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, os.ErrNotExist)
}
