package tree

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/anykind/anykind/readiness"
)

// WriteOptions configures [Write].
type WriteOptions struct {
	// Now is the current time, for ages. Zero means time.Now().
	Now time.Time
	// ShowNamespaces adds each object's namespace.
	ShowNamespaces bool
	// Paint colors a text by its readiness status. nil disables colors.
	Paint func(status readiness.Status, text string) string
}

// Write writes a tree as a table. Each object is below its owner, with its readiness. Unprintable characters of names and messages are
// replaced.
func Write(w io.Writer, tree *Tree, opts *WriteOptions) error {
	opts = cmp.Or(opts, &WriteOptions{})
	now := opts.Now
	if now.IsZero() {
		now = time.Now()
	}
	rows := [][]string{{"OBJECT", "NAMESPACE", "STATUS", "AGE", "MESSAGE"}}
	statuses := []readiness.Status{""}
	visited := map[*Node]bool{}
	var add func(node *Node, first, margin string)
	add = func(node *Node, first, margin string) {
		name := node.Object.GetKind() + "/" + node.Object.GetName()
		age := "<unknown>"
		if created := node.Object.GetCreationTimestamp(); !created.IsZero() {
			age = duration.HumanDuration(now.Sub(created.Time))
		}
		status := string(node.Health.Status)
		if status == "" {
			status = "-"
		}
		rows = append(rows, []string{first + printable(name), printable(node.Object.GetNamespace()), status, age, message(node)})
		statuses = append(statuses, node.Health.Status)
		if visited[node] {
			return
		}
		visited[node] = true
		for i, below := range node.Owned {
			if i < len(node.Owned)-1 {
				add(below, margin+"├─", margin+"│ ")
			} else {
				add(below, margin+"└─", margin+"  ")
			}
		}
	}
	for _, root := range tree.Roots {
		add(root, "", "")
	}
	return writeRows(w, rows, statuses, opts)
}

// message returns the readiness message of a node, or "" if the node is Current.
func message(node *Node) string {
	if node.Health.Status == readiness.Current {
		return ""
	}
	return printable(node.Health.Message)
}

func writeRows(w io.Writer, rows [][]string, statuses []readiness.Status, opts *WriteOptions) error {
	if !opts.ShowNamespaces {
		for i, row := range rows {
			rows[i] = append(row[:1:1], row[2:]...)
		}
	}
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	statusColumn := len(rows[0]) - 3
	for r, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			gap := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+3)
			if i == statusColumn && r > 0 && opts.Paint != nil {
				cell = opts.Paint(statuses[r], cell)
			}
			line.WriteString(cell + gap)
		}
		if _, err := fmt.Fprintln(w, strings.TrimRight(line.String(), " ")); err != nil {
			return err
		}
	}
	return nil
}

// printable replaces unprintable characters by '?'.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, s)
}
