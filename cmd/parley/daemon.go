package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"parley/federation"
	"parley/federation/coordinator"
	"parley/federation/doctor"
	"parley/federation/live"
	"parley/federation/site"
	"parley/internal/files"
	"parley/method"
	"parley/study"
)

// daemonFlags are those of everything that serves.
type daemonFlags struct {
	log, metrics, page string
	again              time.Duration
}

func (f *daemonFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.log, "log", "text", "text, or json: one object a line")
	cmd.Flags().StringVar(&f.metrics, "metrics", "", "local address for Prometheus metrics and /healthz (default none)")
	cmd.Flags().StringVar(&f.page, "page", "", "local address for a live page, or off (default a free port on a "+
		"terminal, else off)")
	cmd.Flags().DurationVar(&f.again, "again", 30*time.Second, "after how long to ask again")
}

// logger returns what writes a daemon's log. It never holds a subject's data.
func (f *daemonFlags) logger(w io.Writer) (*slog.Logger, error) {
	switch f.log {
	case "json":
		return slog.New(slog.NewJSONHandler(w, nil)), nil
	case "text":
		return slog.New(&plainHandler{w: w, mu: new(sync.Mutex)}), nil
	}
	return nil, &usageError{fmt.Errorf("--log %s is not known\n  hint: text or json", f.log)}
}

// plainHandler writes sentences: what a message says is complete without its
// attributes, which are for programs.
type plainHandler struct {
	w  io.Writer
	mu *sync.Mutex
}

func (h *plainHandler) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelInfo }
func (h *plainHandler) WithAttrs([]slog.Attr) slog.Handler           { return h }
func (h *plainHandler) WithGroup(string) slog.Handler                { return h }
func (h *plainHandler) Handle(_ context.Context, r slog.Record) error {
	level := ""
	if r.Level >= slog.LevelWarn {
		level = strings.ToLower(r.Level.String()) + ": "
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	_, err := fmt.Fprintf(h.w, "%s %s%s\n", r.Time.Format(time.DateTime), level, r.Message)
	return err
}

// linkFile holds the link of the live page, where no terminal shows it.
const linkFile = "page.link"

// show serves the live page if the flags ask for it, until ctx ends. Its link goes to the
// terminal, or else to a file in dir, and never to a log, since whoever has it may decide.
func (f *daemonFlags) show(ctx context.Context, out io.Writer, dir string, source live.Source) error {
	address := f.page
	if address == "" && terminal(out) {
		address = "127.0.0.1:0"
	}
	if address == "" || address == "off" {
		return nil
	}
	if err := live.Loopback(address); err != nil {
		return &usageError{fmt.Errorf("--page %w", err)}
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	page, link := live.New(source, listener.Addr().String(), 500*time.Millisecond)
	server := &http.Server{Handler: page, ReadHeaderTimeout: 10 * time.Second,
		BaseContext: func(net.Listener) context.Context { return ctx }}
	go server.Serve(listener)
	context.AfterFunc(ctx, func() { server.Close() })
	if terminal(out) {
		fmt.Fprintf(out, "open %s on this machine to see this live; the link is as good as a password\n", link)
		return nil
	}
	path := filepath.Join(dir, linkFile)
	fmt.Fprintf(out, "the link to see this live on this machine is in %s; it is as good as a password\n", path)
	return files.WriteOwn(path, []byte(link+"\n"))
}

// serve runs a daemon with the log, the monitor and the page that the flags ask for. That
// it was told to stop is how it should end.
func (f *daemonFlags) serve(cmd *cobra.Command, dir string, source live.Source, state gauges,
	daemon func(*slog.Logger, *monitor) func(context.Context) error) error {
	ctx := cmd.Context()
	log, err := f.logger(cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	watch, err := f.monitor(ctx, state)
	if err != nil {
		return err
	}
	if err := f.show(ctx, cmd.ErrOrStderr(), dir, source); err != nil {
		return err
	}
	err = daemon(log, watch)(ctx)
	if ctx.Err() != nil && (err == nil || errors.Is(err, context.Canceled)) {
		return nil
	}
	return err
}

// ago says how long ago something was, by this machine's clock.
func ago(t time.Time) string {
	d := time.Since(t).Round(time.Second)
	if d < time.Second {
		return "just now"
	}
	return "for " + d.String()
}

// work is what a command does with its arguments.
type work = func(cmd *cobra.Command, a []string) error

// inCoordinator is work in a coordinator's folder, which the first argument names.
func inCoordinator(run func(cmd *cobra.Command, f *coordinator.Folder, a []string) error) work {
	return inFolder(coordinator.Open, run)
}

// inSite is work in a site's folder, which the first argument names.
func inSite(run func(cmd *cobra.Command, f *site.Folder, a []string) error) work {
	return inFolder(site.Open, run)
}

func inFolder[F any](open func(string, method.Registry) (F, error),
	run func(cmd *cobra.Command, f F, a []string) error) work {
	return func(cmd *cobra.Command, a []string) error {
		f, err := open(a[0], methods)
		if err != nil {
			return err
		}
		return run(cmd, f, a)
	}
}

// ofStudy is work on the study that the second argument names, in a folder.
func ofStudy[F interface{ Find(string) (string, error) }](run func(cmd *cobra.Command, f F, digest string,
	a []string) error) func(*cobra.Command, F, []string) error {
	return func(cmd *cobra.Command, f F, a []string) error {
		digest, err := f.Find(a[1])
		if err != nil {
			return err
		}
		return run(cmd, f, digest, a)
	}
}

// errNoResults means that a study has not come to its end.
var errNoResults = errors.New("it has no results yet")

// printResults says where the results of a study are, in the folder of either end.
func printResults(cmd *cobra.Command, f interface {
	ResultsPath(*study.Plan) (string, error)
	Plan(digest string) (*study.Plan, error)
}, digest string, as form) error {
	plan, err := f.Plan(digest)
	if err != nil {
		return err
	}
	path, err := f.ResultsPath(plan)
	if err != nil {
		return err
	}
	page := filepath.Join(path, "report.html")
	if !exists(page) {
		return fmt.Errorf("study %s: %w", plan.Name, errNoResults)
	}
	found := struct {
		Study   string `json:"study"`
		Results string `json:"results"`
		Report  string `json:"report"`
	}{digest, path, page}
	return as.line(cmd, found, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, "Open", page)
		return err
	})
}

// logCommand looks at the audit log of either end, in the folder of which.
func logCommand(whose string) *cobra.Command {
	cmd := &cobra.Command{Use: "log", Short: "Show and verify the audit log"}
	file := func(dir string) string { return filepath.Join(dir, "audit.jsonl") }
	var shown, verified form
	show := &cobra.Command{
		Use: "show DIR", Short: "Print what " + whose + " has noted, oldest first",
		RunE: func(cmd *cobra.Command, a []string) error {
			return federation.ReadLog(file(a[0]), func(e federation.LogEntry) error {
				return shown.line(cmd, e, func(w io.Writer) error { return printEntry(w, e) })
			})
		},
	}
	shown.flag(show, "print one JSON object a line")
	verify := &cobra.Command{
		Use: "verify DIR", Short: "Check that no line was changed, removed or inserted",
		Long: "Check the hashes of the log. Keep the last one elsewhere, because missing last lines go unnoticed.",
		RunE: func(cmd *cobra.Command, a []string) error {
			n, head, err := federation.VerifyLog(file(a[0]))
			if err != nil {
				return err
			}
			found := struct {
				Lines int    `json:"lines"`
				Head  string `json:"head"`
			}{n, head}
			return verified.object(cmd, found, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "%s is whole: %d lines\nlast hash %s\n", file(a[0]), n, head)
				return err
			})
		},
	}
	verified.flag(verify, "print what was found as JSON")
	cmd.AddCommand(show, verify)
	return cmd
}

func printEntry(w io.Writer, e federation.LogEntry) error {
	line := e.At.Local().Format(time.DateTime) + " " + e.What
	if e.Site != "" {
		line += ", site " + e.Site
	}
	if e.Study != "" {
		line += fmt.Sprintf(", study %.12s", e.Study)
	}
	_, err := fmt.Fprintln(w, line+": "+e.Text)
	return err
}

func coordinatorDoctorCommand() *cobra.Command {
	return doctorCommand("the coordinator", "Check the folder, disk, audit log, names, ports and certificates, and "+
		"say how to mend each.", doctor.Coordinator)
}

func siteDoctorCommand() *cobra.Command {
	return doctorCommand("the site", "Check the folder, disk, store, policy, data and the way to the coordinator, and "+
		"say how to mend each.", doctor.Site)
}

func doctorCommand(whose, long string, examine func(context.Context, string, method.Registry,
	doctor.Options) doctor.Report) *cobra.Command {
	var as form
	return as.flag(&cobra.Command{
		Use:   "doctor DIR",
		Short: "Look for what stands in the way of " + whose,
		Long:  long + "\nIt changes nothing. Exit code 1 if anything fails.",
		RunE: func(cmd *cobra.Command, a []string) (err error) {
			r := examine(cmd.Context(), a[0], methods, doctor.Options{})
			examined := struct {
				OK     bool          `json:"ok"`
				Checks doctor.Report `json:"checks"`
			}{r.OK(), r}
			err = as.object(cmd, examined, r.Text)
			if err == nil && !r.OK() {
				err = fmt.Errorf("something stands in the way of %s: see the lines that begin with fail", whose)
			}
			return err
		},
	}, "print the checks as JSON")
}
