package difftest

import (
	"bufio"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// permission is a line of permitted.txt: a class of permitted differences and the reason.
type permission struct {
	line              int
	operation, detail *regexp.Regexp
	reason            string
	count             int
}

// readPermissions reads lines of three parts separated by " :: ": a regular expression for the operation ("custom patch-json
// Widget"), a regular expression for the difference, and the reason.
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

// explain removes permitted lines from a difference and counts the permissions. matched is true if lines were removed,
// unexplained if lines are left. A different status of a custom resource is never permitted.
func explain(one *difference, permissions []*permission) (matched, unexplained bool) {
	name := strings.Join([]string{one.op.Class, one.op.Verb, one.op.Kind}, " ")
	used := map[*permission]bool{}
	one.lines = slices.DeleteFunc(one.lines, func(line string) bool {
		if one.op.Class == "custom" && strings.HasPrefix(line, "status: ") {
			return false
		}
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
	return len(used) > 0, len(one.lines) > 0
}
