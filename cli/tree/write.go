package tree

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// Write writes a tree as a table. Each object is below its owner, with its readiness. References are above the owned objects, with
// their relation: a reference of an owner is not repeated below it. Unprintable characters of names and messages are replaced.
func Write(w io.Writer, tree *Tree, opts *WriteOptions) error {
	opts = cmp.Or(opts, &WriteOptions{})
	now := opts.Now
	if now.IsZero() {
		now = time.Now()
	}
	t := &table{now: now, showNamespaces: opts.ShowNamespaces, visited: map[*Node]bool{}}
	t.rows = [][]string{{"OBJECT", "NAMESPACE", "STATUS", "AGE", "MESSAGE"}}
	t.statuses = []readiness.Status{""}
	for _, root := range tree.Roots {
		t.add(root, nil, "", "")
	}
	return t.write(w, opts.Paint)
}

// table collects the rows of a tree.
type table struct {
	now            time.Time
	showNamespaces bool
	visited        map[*Node]bool
	rows           [][]string
	statuses       []readiness.Status
}

// edge is a relation to a target.
type edge struct {
	relation string
	target   *Node
}

// add adds a node with its references and the nodes below. above are the references of its owners.
func (t *table) add(node *Node, above []edge, first, margin string) {
	t.addRow(node, first, string(node.Health.Status), message(node))
	if t.visited[node] {
		return
	}
	t.visited[node] = true
	var references []Reference
	for _, ref := range node.References {
		if to := (edge{ref.Relation, ref.Target}); !slices.Contains(above, to) {
			references = append(references, ref)
			above = append(slices.Clip(above), to)
		}
	}
	last := len(references) + len(node.Owned) - 1
	for i := range last + 1 {
		branch := "├─"
		indent := "│ "
		if i == last {
			branch = "└─"
			indent = "  "
		}
		if i < len(references) {
			t.addReference(node, &references[i], margin+branch)
		} else {
			t.add(node.Owned[i-len(references)], above, margin+branch, margin+indent)
		}
	}
}

func (t *table) addReference(node *Node, ref *Reference, branch string) {
	target := ref.Target.Object.GetNamespace()
	t.showNamespaces = t.showNamespaces || target != "" && target != node.Object.GetNamespace()
	status := string(ref.Target.Health.Status)
	text := message(ref.Target)
	switch {
	case apierrors.IsNotFound(ref.Err):
		status = "NotFound"
		if ref.Optional {
			text = "optional"
		}
	case apierrors.IsForbidden(ref.Err):
		text = "no permission to get it"
	case ref.Err != nil:
		text = printable(ref.Err.Error())
	}
	t.addRow(ref.Target, branch+ref.Relation+" ", status, text)
	if ref.IsBroken() {
		t.statuses[len(t.statuses)-1] = readiness.Failed // painted alike
	}
}

func (t *table) addRow(node *Node, first, status, text string) {
	name := node.Object.GetKind() + "/" + node.Object.GetName()
	age := "<unknown>"
	if created := node.Object.GetCreationTimestamp(); !created.IsZero() {
		age = duration.HumanDuration(t.now.Sub(created.Time))
	}
	t.rows = append(t.rows, []string{first + printable(name), printable(node.Object.GetNamespace()), cmp.Or(status, "-"), age, text})
	t.statuses = append(t.statuses, node.Health.Status)
}

// message returns the readiness message of a node, or "" if the node is Current.
func message(node *Node) string {
	if node.Health.Status == readiness.Current {
		return ""
	}
	return printable(node.Health.Message)
}

func (t *table) write(w io.Writer, paint func(readiness.Status, string) string) error {
	rows := t.rows
	if !t.showNamespaces {
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
			if i == statusColumn && r > 0 && paint != nil {
				cell = paint(t.statuses[r], cell)
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
