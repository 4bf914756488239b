package simulate

import (
	"bytes"
	"context"
	"runtime/pprof"
	"strconv"
	"strings"
)

// labelName is the pprof label of goroutines started by Run, directly or indirectly.
const labelName = "simulate"

// labeled calls f with a pprof label. Goroutines started by f inherit the label.
func labeled(ctx context.Context, label string, f func()) {
	pprof.Do(ctx, pprof.Labels(labelName, label), func(context.Context) { f() })
}

// countGoroutines returns the number of goroutines with a label.
func countGoroutines(label string) (total int) {
	for stack := range strings.SplitSeq(goroutines(label), "\n\n") {
		count, _, _ := strings.Cut(stack, " @ ")
		n, _ := strconv.Atoi(count[strings.LastIndex(count, "\n")+1:])
		total += n
	}
	return total
}

// goroutines returns the stacks of the goroutines with a label.
func goroutines(label string) string {
	var profile bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&profile, 1); err != nil {
		return err.Error()
	}
	var found []string
	for stack := range strings.SplitSeq(profile.String(), "\n\n") {
		if strings.Contains(stack, `"`+labelName+`":"`+label+`"`) {
			found = append(found, stack)
		}
	}
	return strings.Join(found, "\n\n")
}
