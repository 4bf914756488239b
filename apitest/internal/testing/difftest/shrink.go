package difftest

import (
	"fmt"
	"go/format"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// shrink returns a short subsequence of operations for which fails is true. It leaves out ever smaller parts and calls fails at
// most limit times.
func shrink(operations []Operation, limit int, fails func([]Operation) bool) []Operation {
	for size := (len(operations) + 1) / 2; ; size = (size + 1) / 2 {
		smaller := false
		for at := len(operations); at > 0 && limit > 0; at -= size {
			rest := slices.Concat(operations[:max(0, at-size)], operations[at:])
			if len(rest) == 0 {
				continue
			}
			limit--
			if fails(rest) {
				operations = rest
				smaller = true
			}
		}
		if limit <= 0 || size == 1 && !smaller {
			return operations
		}
	}
}

// Shrink shrinks the first failing block until its first unexplained difference needs all remaining operations, and returns a Go
// test. It plays at most replays+2 times.
func (r *Result) Shrink(t testing.TB, sandbox, double *Server, c Config, replays int) string {
	t.Helper()
	if len(r.failing) == 0 || replays == 0 {
		return "not shrunk"
	}
	scenario, wanted := r.shrunk(t, sandbox, double, replays)
	return GoTest(scenario, c.Permitted, wanted)
}

// shrunk returns the shrunk first failing block, and the signature of its difference.
func (r *Result) shrunk(t testing.TB, sandbox, double *Server, replays int) (Scenario, string) {
	t.Helper()
	b := r.failing[0]
	l := newLab(t, sandbox, double, r.pool, b.kinds)
	wanted, operations := b.firstDifference()
	fails := func(operations []Operation) bool {
		for _, one := range l.play(t, kindsOf(b.kinds, operations), operations, true) {
			if _, unexplained := explain(&one, r.permissions); unexplained {
				if slices.ContainsFunc(one.lines, func(line string) bool { return signature(one.op, line) == wanted }) {
					return true
				}
			}
		}
		return false
	}
	for _, only := range []func(op Operation) bool{
		func(op Operation) bool { return op.Method != methodRestart && op.Method != methodCompact },
		func(op Operation) bool { return strings.HasPrefix(wanted, op.Class+" "+op.Kind+" ") },
	} {
		part := slices.DeleteFunc(slices.Clone(operations), func(op Operation) bool { return !only(op) })
		if len(part) > 0 && len(part) < len(operations) && fails(part) {
			operations = part
		}
	}
	scenario := Scenario{Operations: shrink(operations, replays, fails)}
	for _, k := range kindsOf(b.kinds, scenario.Operations) {
		if k.class == "custom" {
			scenario.Definitions = append(scenario.Definitions, k.definition)
		}
	}
	return scenario, wanted
}

// firstDifference returns the signature of the first unexplained difference and the operations up to it.
func (b *block) firstDifference() (wanted string, operations []Operation) {
	for _, one := range b.differences {
		if len(one.lines) == 0 {
			continue
		}
		end := slices.IndexFunc(b.operations, func(op Operation) bool { return op.ID > one.op.ID })
		if one.op.LastOperation > 0 || end < 0 { // a watch includes events of later operations
			end = len(b.operations)
		}
		return signature(one.op, one.lines[0]), b.operations[:end]
	}
	return "", b.operations
}

// kindsOf returns the kinds of the operations.
func kindsOf(kinds []*kind, operations []Operation) []*kind {
	return slices.DeleteFunc(slices.Clone(kinds), func(k *kind) bool {
		return !slices.ContainsFunc(operations, func(op Operation) bool { return op.Class == k.class && op.Kind == k.name })
	})
}

// GoTest returns a Go test that replays a scenario.
func GoTest(s Scenario, permitted, comment string) string {
	var text strings.Builder
	fmt.Fprintf(&text, "// It fails with: %s\nfunc TestDifferential_Shrunk(t *testing.T) {\n", comment)
	fmt.Fprintf(&text, "\tdifftest.Replay(t, difftest.Sandbox(t), difftest.Double(t, nil), %q, difftest.Scenario{\n", permitted)
	fmt.Fprintf(&text, "\t\tDefinitions: %#v,\n\t\tOperations: []difftest.Operation{\n", s.Definitions)
	for _, op := range s.Operations {
		text.WriteString("\t\t\t{" + fields(op) + "},\n")
	}
	text.WriteString("\t\t},\n\t})\n}\n")
	formatted, err := format.Source([]byte(text.String()))
	if err != nil {
		return text.String()
	}
	return string(formatted)
}

// fields returns the non-zero fields of an operation as Go source.
func fields(op Operation) string {
	var parts []string
	value := reflect.ValueOf(op)
	for i := range value.NumField() {
		field := value.Field(i)
		if field.IsZero() {
			continue
		}
		text := fmt.Sprintf("%#v", field.Interface())
		if field.Kind() == reflect.String && strings.Contains(field.String(), `"`) && !strings.Contains(field.String(), "`") {
			text = "`" + field.String() + "`"
		}
		parts = append(parts, value.Type().Field(i).Name+": "+text)
	}
	return strings.Join(parts, ", ")
}

// Replay plays a scenario on both servers and fails if there are differences that are not permitted.
func Replay(t testing.TB, sandbox, double *Server, permitted string, s Scenario) {
	t.Helper()
	kinds := builtinKinds()
	for _, k := range kinds {
		k.class = "builtin"
	}
	merged := &pool{definitions: map[string]string{}}
	for _, withRules := range []bool{false, true} {
		p := readPool(t, withRules)
		for _, name := range s.Definitions {
			if text, found := p.definitions[name]; found {
				merged.definitions[name] = text
				kinds = append(kinds, p.kind(t, name))
			}
		}
	}
	l := newLab(t, sandbox, double, merged, kindsOf(kinds, s.Operations))
	permissions := readPermissions(t, permitted)
	for _, one := range l.play(t, kindsOf(kinds, s.Operations), s.Operations, true) {
		if _, unexplained := explain(&one, permissions); unexplained {
			t.Errorf("operation %d, %s %s: %s", one.op.ID, one.op.Method, one.op.Path, strings.Join(one.lines, "\n\t"))
		}
	}
}
