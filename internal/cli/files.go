package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"text/tabwriter"
	"unicode"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/backstory-proxy/backstory/openai"
)

func filesCommands() Command {
	return Command{
		Name:  "files",
		Usage: "<command>",
		Short: "Adds, lists, removes, searches and re-embeds a tenant's files",
		Long: `
Manages one tenant's files over the HTTP API, as an app would.

The environment holds the address and the keys:
  BACKSTORY_URL   the base URL; default ` + defaultURL + `
  SERVICE_KEY     the service key, which also names the tenant
  ROUTER_API_KEY  the model router's key; without it the service key is sent
                  alone, which works if the operator has set router_key

At the plan's rate limit, commands wait and continue.`,
		Setup: func(c *cobra.Command) {
			add := filesCommand("add <path>...", "Uploads files, and the files in folders", cobra.MinimumNArgs(1), addFilesCommand)
			add.Flags().Int("jobs", 4, "How many files to upload at once")
			list := filesCommand("list", "Lists the files", cobra.NoArgs, listFilesCommand)
			rm := filesCommand("rm <id or name>...", "Removes files", cobra.MinimumNArgs(1), removeFilesCommand)
			search := filesCommand("search <question>", "Shows the chunks that a question finds", cobra.MinimumNArgs(1), searchFilesCommand)
			search.Flags().Int("limit", 5, "How many chunks to show, at most 50")
			again := filesCommand("reindex", "Re-embeds the files whose vectors are another embedder's", cobra.NoArgs, reindexFilesCommand)
			again.Flags().Int("jobs", 2, "How many files to re-embed at once")
			group(c, add, list, rm, search, again)
		},
	}
}

const defaultURL = "http://localhost:8080/api/v1"

// filesTask is a files command under way.
type filesTask struct {
	*filesClient
	ctx      context.Context
	json     bool
	out, err io.Writer
}

// filesCommand makes a subcommand.
func filesCommand(use, short string, args cobra.PositionalArgs, do func(t *filesTask, fl flags) error) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: args}
	c.Flags().String("url", "", "The base URL of the API (default $BACKSTORY_URL or "+defaultURL+")")
	c.Flags().String("key", "", "The service key (default $SERVICE_KEY, which other users of the machine can't see)")
	c.Flags().Bool("json", false, "Write the API's JSON")
	c.RunE = func(c *cobra.Command, _ []string) error {
		fl := flags{c.Flags()}
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		t := &filesTask{
			filesClient: &filesClient{
				base:    strings.TrimRight(cmp.Or(fl.String("url"), os.Getenv("BACKSTORY_URL"), defaultURL), "/"),
				service: cmp.Or(fl.String("key"), os.Getenv("SERVICE_KEY")),
				router:  os.Getenv("ROUTER_API_KEY"),
			},
			ctx: ctx, json: fl.Bool("json"), out: os.Stdout, err: os.Stderr,
		}
		if t.service == "" {
			return errors.New("no service key: set SERVICE_KEY")
		}
		return t.explain(do(t, fl))
	}
	return c
}

// explain says what to do about an error.
func (t *filesTask) explain(err error) error {
	var unreachable *net.OpError
	var refused *apiError
	switch {
	case errors.As(err, &refused) && refused.status == http.StatusNotFound:
		return fmt.Errorf("%s has no files: %w Is BACKSTORY_URL correct?", t.base, err)
	case t.ctx.Err() != nil && err != nil:
		return errors.New("interrupted")
	case errors.As(err, &unreachable) && unreachable.Op == "dial":
		return fmt.Errorf("nothing answers at %s; is Backstory running, and is BACKSTORY_URL correct?", t.base)
	}
	return err
}

func (t *filesTask) writeJSON(v any) error {
	e := json.NewEncoder(t.out)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

func listFilesCommand(t *filesTask, _ flags) error {
	list, err := t.list(t.ctx)
	if err != nil {
		return err
	}
	if t.json {
		return t.writeJSON(openai.NewList(list, len(list), func(f openai.File) string { return f.ID }))
	}
	w := tabwriter.NewWriter(t.out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tNAME\tSIZE\tSTATUS\tADDED")
	for _, f := range list {
		status := f.Status
		if f.StatusDetails != "" {
			status += ": " + f.StatusDetails
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", f.ID, oneLine(f.Filename), humanize.Bytes(uint64(max(0, f.Bytes))), oneLine(status), day(f.CreatedAt))
	}
	return w.Flush()
}

// oneLine is text on one line, without what a terminal obeys.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
}

func removeFilesCommand(t *filesTask, fl flags) error {
	list, err := t.list(t.ctx)
	if err != nil {
		return err
	}
	failed := 0
	for _, arg := range fl.Args() {
		id, err := fileNamed(list, arg)
		if err == nil {
			err = t.call(t.ctx, http.MethodDelete, "/files/"+url.PathEscape(id), "", nil, new(openai.Deleted))
		}
		if err != nil {
			if hopeless(err) {
				return err
			}
			failed++
			fmt.Fprintf(t.err, "%s: %v\n", oneLine(arg), err)
			continue
		}
		fmt.Fprintf(t.out, "removed %s\n", oneLine(arg))
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d files were not removed", failed, fl.NArg())
	}
	return nil
}

// fileNamed returns the id of the file that has this id, or alone has this name.
func fileNamed(list []openai.File, name string) (string, error) {
	var named []string
	for _, f := range list {
		if f.ID == name {
			return name, nil
		}
		if f.Filename == name {
			named = append(named, f.ID)
		}
	}
	switch len(named) {
	case 0:
		return "", errors.New("no such file")
	case 1:
		return named[0], nil
	}
	return "", fmt.Errorf("several files have this name; give the id: %s", strings.Join(named, " "))
}

// shownText is how much of a chunk is shown, in characters.
const shownText = 400

func searchFilesCommand(t *filesTask, fl flags) error {
	var found openai.SearchResults
	in := map[string]any{"query": strings.Join(fl.Args(), " "), "limit": fl.Int("limit")}
	if err := t.post(t.ctx, "/files/search", in, &found); err != nil {
		return err
	}
	if t.json {
		return t.writeJSON(found)
	}
	if found.Degraded != "" {
		fmt.Fprintf(t.err, "Part of the search failed: %s. These are the results of the rest.\n", oneLine(found.Degraded))
	}
	if len(found.Data) == 0 {
		fmt.Fprintln(t.err, "Nothing found.")
	}
	for i, r := range found.Data {
		where := oneLine(r.Filename)
		if r.Page > 0 {
			where += fmt.Sprintf(", page %d", r.Page)
		}
		if r.Section != "" {
			where += ", " + oneLine(r.Section)
		}
		var text strings.Builder
		for _, c := range r.Content {
			text.WriteString(c.Text)
		}
		shown := []rune(strings.Join(strings.Fields(oneLine(text.String())), " "))
		if len(shown) > shownText {
			shown = append(shown[:shownText], '…')
		}
		fmt.Fprintf(t.out, "%d. %s (%.2f)\n   %s\n\n", i+1, where, r.Score, string(shown))
	}
	return nil
}
