package command

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/anykind/anykind/cli/exit"
	"github.com/anykind/anykind/cli/internal/printable"
	"github.com/anykind/anykind/dynamic"
)

// conflictHint is kubectl's hint after the conflicts of an apply.
const conflictHint = `
Please review the fields above--they currently have other managers. Here
are the ways you can resolve this warning:
* If you intend to manage all of these fields, please re-run the apply
  command with the ` + "`--force-conflicts`" + ` flag.
* If you do not intend to manage all of the fields, please edit your
  manifest to remove references to the fields that should keep their
  current managers.
* You may co-own fields by updating your manifest to match the existing
  value; in this case, you'll become the manager if the other manager(s)
  stop managing the field (remove it from their configuration).
See https://kubernetes.io/docs/reference/using-api/server-side-apply/#conflicts`

// ConflictsError formats the conflicts of an apply like kubectl: grouped by manager, in the order of the server's message.
func ConflictsError(err *dynamic.ApplyConflictError) error {
	if len(err.Conflicts) == 1 {
		only := &err.Conflicts[0]
		return exit.WithHelp(errors.New("Apply failed with 1 conflict: conflict with "+managerText(only)+": "+only.Field), conflictHint)
	}
	fields := map[string][]string{}
	for i := range err.Conflicts {
		manager := managerText(&err.Conflicts[i])
		fields[manager] = append(fields[manager], "- "+printable.Line(err.Conflicts[i].Field))
	}
	message := ServerMessage(err)
	place := func(manager string) int { return strings.Index(message, "conflicts with "+manager+":") }
	managers := slices.Sorted(maps.Keys(fields))
	sort.SliceStable(managers, func(i, j int) bool { return place(managers[i]) < place(managers[j]) })
	first := ""
	lines := ""
	for _, manager := range managers {
		line := "conflicts with " + printable.Line(manager) + ":"
		if first == "" {
			first = fmt.Sprintf("Apply failed with %d conflicts: %s", len(err.Conflicts), line)
		} else {
			lines += "\n" + line
		}
		lines += "\n" + strings.Join(fields[manager], "\n")
	}
	return exit.WithHelp(errors.New(first), lines+conflictHint)
}

// managerText formats the manager of a conflict like the server.
func managerText(conflict *dynamic.FieldConflict) string {
	text := strconv.Quote(conflict.Manager)
	if conflict.Subresource != "" {
		text += " with subresource " + strconv.Quote(conflict.Subresource)
	}
	if conflict.APIVersion != "" {
		text += " using " + conflict.APIVersion
	}
	if !conflict.Time.IsZero() {
		text += " at " + conflict.Time.UTC().Format(time.RFC3339)
	}
	return text
}
