package difftest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// difference is what one operation's answers do not have in common.
type difference struct {
	index int
	op    Operation
	lines []string
}

// compare returns the differences between two runs of the same operations.
func compare(operations []Operation, a, b transcript) []difference {
	first, firstOrder := normalize(operations, a)
	second, secondOrder := normalize(operations, b)
	var all []difference
	for i, op := range operations {
		if lines := compareAnswers(first[i], second[i]); len(lines) > 0 {
			all = append(all, difference{index: i, op: op, lines: lines})
		}
	}
	common := func(order, other []string) []string {
		known := map[string]bool{}
		for _, label := range other {
			known[label] = true
		}
		return slices.DeleteFunc(slices.Clone(order), func(label string) bool { return !known[label] })
	}
	x, y := common(firstOrder, secondOrder), common(secondOrder, firstOrder)
	for i := range x {
		if x[i] != y[i] {
			line := fmt.Sprintf("order of resourceVersions: %s | %s", x[i], y[i])
			all = append(all, difference{index: len(operations), op: Operation{Class: "all", Verb: "order"}, lines: []string{line}})
			break
		}
	}
	return all
}

func compareAnswers(a, b normalAnswer) []string {
	var lines []string
	if a.Status != b.Status {
		lines = append(lines, fmt.Sprintf("status: %d | %d", a.Status, b.Status))
	}
	if a.ContentType != b.ContentType {
		lines = append(lines, fmt.Sprintf("content type: %s | %s", a.ContentType, b.ContentType))
	}
	lines = appendDifferences(lines, "warnings", toAny(a.Warnings), toAny(b.Warnings))
	lines = appendDifferences(lines, "body", a.Body, b.Body)
	return appendDifferences(lines, "events", toAny(a.Events), toAny(b.Events))
}

func toAny(values []any) any {
	if values == nil {
		return []any{}
	}
	return values
}

// appendDifferences appends a line for each place where two JSON values differ.
func appendDifferences(lines []string, path string, a, b any) []string {
	if reflect.DeepEqual(a, b) {
		return lines
	}
	x, isMap := a.(map[string]any)
	y, isMapToo := b.(map[string]any)
	if isMap && isMapToo {
		keys := maps.Clone(x)
		maps.Copy(keys, y)
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			left, inLeft := x[key]
			right, inRight := y[key]
			switch {
			case !inLeft:
				lines = append(lines, fmt.Sprintf("%s.%s: absent | %s", path, key, short(right)))
			case !inRight:
				lines = append(lines, fmt.Sprintf("%s.%s: %s | absent", path, key, short(left)))
			default:
				lines = appendDifferences(lines, path+"."+key, left, right)
			}
		}
		return lines
	}
	v, isList := a.([]any)
	w, isListToo := b.([]any)
	if isList && isListToo && len(v) == len(w) {
		for i := range v {
			lines = appendDifferences(lines, fmt.Sprintf("%s[%d]", path, i), v[i], w[i])
		}
		return lines
	}
	return append(lines, fmt.Sprintf("%s: %s | %s", path, short(a), short(b)))
}

func short(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	readable := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(string(text))
	if len(readable) > 600 {
		readable = readable[:600] + "…"
	}
	return readable
}

// permission is a line of permitted.txt: differences of operations that match, and why they are permitted.
type permission struct {
	line              int
	operation, detail *regexp.Regexp
	reason            string
	count             int
}

// readPermissions reads lines of three parts separated by " :: ": expressions for the operation ("custom patch-json Widget")
// and for the difference, and the reason.
func readPermissions(t testing.TB, path string) []*permission {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	var all []*permission
	lines := bufio.NewScanner(file)
	for number := 1; lines.Scan(); number++ {
		text := strings.TrimSpace(lines.Text())
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		parts := strings.Split(text, " :: ")
		require.Len(t, parts, 3, "%s:%d", path, number)
		operation, err := regexp.Compile("^(" + parts[0] + ")$")
		require.NoError(t, err, "%s:%d", path, number)
		detail, err := regexp.Compile("^(" + parts[1] + ")$")
		require.NoError(t, err, "%s:%d", path, number)
		all = append(all, &permission{line: number, operation: operation, detail: detail, reason: parts[2]})
	}
	require.NoError(t, lines.Err())
	return all
}

// unexplained returns the differences without the lines that are permitted, and counts the operations that matched.
func unexplained(all []difference, permissions []*permission) (rest []difference, matched int) {
	for _, one := range all {
		name := strings.Join([]string{one.op.Class, one.op.Verb, one.op.Kind}, " ")
		used := map[*permission]bool{}
		one.lines = slices.DeleteFunc(one.lines, func(line string) bool {
			i := slices.IndexFunc(permissions, func(p *permission) bool {
				return p.operation.MatchString(name) && p.detail.MatchString(line)
			})
			if i >= 0 {
				used[permissions[i]] = true
			}
			return i >= 0
		})
		for p := range used {
			p.count++
		}
		if len(used) > 0 {
			matched++
		}
		if len(one.lines) > 0 {
			rest = append(rest, one)
		}
	}
	return rest, matched
}
