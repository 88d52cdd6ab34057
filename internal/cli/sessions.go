package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/backstory-proxy/backstory/gateway"
	"github.com/backstory-proxy/backstory/internal/adminapi"
	"github.com/backstory-proxy/backstory/openai"
)

func (a Admin) sessionsCommands() Command {
	return Command{
		Name:  "sessions",
		Short: "Lists, shows, exports and deletes sessions",
		Long: `
Manages a tenant's sessions in the store of the running instance, over its admin
API.

An export is JSON Lines, one message per line. POST /sessions/{id}/messages with
Content-Type: application/jsonl imports it.`,
		Setup: func(c *cobra.Command) {
			list := a.operate("list --tenant <tenant> [--limit <n>] [--after <session>]", "Lists sessions, most recently updated first", cobra.NoArgs, listSessionsCommand)
			list.Flags().Int("limit", gateway.DefaultPage, "How many to list, at most 100")
			list.Flags().String("after", "", "List the sessions after this one")
			show := a.operate("show --tenant <tenant> <session>", "Shows a session and its messages", cobra.ExactArgs(1), showSessionCommand)
			rm := a.operate("rm --tenant <tenant> <session>...", "Deletes sessions", cobra.MinimumNArgs(1), removeSessionsCommand)
			export := a.operate("export --tenant <tenant> <session>", "Writes the messages of a session as JSON Lines", cobra.ExactArgs(1), exportSessionCommand)
			for _, sub := range []*cobra.Command{list, show, rm, export} {
				sub.Flags().String("tenant", "", "Whose sessions")
				_ = sub.MarkFlagRequired("tenant") // it is there
			}
			group(c, list, show, rm, export)
		},
	}
}

// sessionsURI is a path of the admin API with its parameters.
func sessionsURI(path string, fl flags, parameters ...string) string {
	query := url.Values{"tenant": {fl.String("tenant")}}
	for i := 0; i+1 < len(parameters); i += 2 {
		query.Set(parameters[i], parameters[i+1])
	}
	return path + "?" + query.Encode()
}

func listSessionsCommand(o *operator, fl flags) error {
	var list openai.List[gateway.SessionObject]
	uri := sessionsURI(adminapi.SessionsPath, fl, "limit", strconv.Itoa(fl.Int("limit")), "after", fl.String("after"))
	if shown, err := o.call(http.MethodGet, uri, nil, &list); err != nil || shown {
		return err
	}
	w := tabwriter.NewWriter(o.out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "SESSION\tMESSAGES\tTOKENS\tUPDATED\tEXPIRES")
	for _, s := range list.Data {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", plain(s.ID), humanize.Comma(s.Messages), humanize.Comma(s.Tokens), minute(float64(s.UpdatedAt)), expires(&s))
	}
	if err := w.Flush(); err != nil || !list.HasMore {
		return err
	}
	_, err := fmt.Fprintf(o.err, "\nThere are more: --after %s\n", plain(*list.LastID))
	return err
}

func expires(s *gateway.SessionObject) string {
	if s.ExpiresAt == nil {
		return "never"
	}
	return minute(float64(*s.ExpiresAt))
}

func showSessionCommand(o *operator, fl flags) error {
	var s gateway.SessionObject
	if shown, err := o.call(http.MethodGet, sessionsURI(adminapi.SessionsPath, fl, "session", fl.Arg(0)), nil, &s); err != nil || shown {
		return err
	}
	fmt.Fprintf(o.out, "%s: %d messages, %d tokens, created %s, updated %s, expires %s\n",
		plain(s.ID), s.Messages, s.Tokens, minute(float64(s.CreatedAt)), minute(float64(s.UpdatedAt)), expires(&s))
	lines, err := o.export(fl)
	if err != nil {
		return err
	}
	defer lines.Close()
	in := bufio.NewReader(lines)
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		m := openai.ParseMessage(line)
		text := m.Text()
		if text == "" { // a call, an image
			text = string(line[:len(line)-1])
		}
		fmt.Fprintf(o.out, "\n%s %s\n%s\n", minute(m.Get("created_at").Num), plain(m.Role), printable(text))
	}
}

func removeSessionsCommand(o *operator, fl flags) error {
	for _, id := range fl.Args() {
		var deleted openai.Deleted
		shown, err := o.call(http.MethodDelete, sessionsURI(adminapi.SessionsPath, fl, "session", id), nil, &deleted)
		if err != nil {
			return fmt.Errorf("%s: %w", plain(id), err)
		}
		if !shown {
			fmt.Fprintf(o.out, "deleted %s\n", plain(deleted.ID))
		}
	}
	return nil
}

func exportSessionCommand(o *operator, fl flags) error {
	lines, err := o.export(fl)
	if err != nil {
		return err
	}
	defer lines.Close()
	if _, err := io.Copy(o.out, lines); err != nil {
		return fmt.Errorf("the export broke off: %w", err)
	}
	return nil
}

// export begins an export of the session that is named.
func (o *operator) export(fl flags) (io.ReadCloser, error) {
	address, err := o.admin.Address(o.address, o.config, o.adapter)
	if err != nil {
		return nil, err
	}
	reply, err := o.admin.Request(address, http.MethodGet, sessionsURI(adminapi.MessagesPath, fl, "session", fl.Arg(0)),
		http.Header{"Accept": {gateway.LinesType}}, nil)
	if err != nil {
		return nil, explainAdmin(address, err)
	}
	return reply.Body, nil
}

func minute(seconds float64) string {
	return time.Unix(int64(seconds), 0).UTC().Format("2006-01-02 15:04Z")
}

// plain shows a name as it is, unless it holds what a terminal would act on, or
// what would break a table.
func plain(name string) string {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(name)
	}
	return name
}

// printable is text without what a terminal would act on.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text)
}
