package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestMutantsOf_ChangesEachKind(t *testing.T) {
	for body, want := range map[string][]string{
		"if a < 2 { f() }": {
			"branch never taken: if false && (a < 2) { f() }", "boundary: if a <= 2 { f() }",
			"constant off by one: if a < 3 { f() }", "removed statement: if a < 2 { _ = func() { f() } }",
		},
		"if err != nil { return }":     {"dropped error check: if false && (err != nil) { return }", "negated comparison: if err == nil { return }"},
		"if ok() { return }":           {"removed early return: if false && (ok()) { return }", "negated condition: if !(ok()) { return }"},
		"b = c && d || true":           {"removed statement: _ = func() { b = c && d || true }", "swapped && and ||: b = c && d && true", "swapped && and ||: b = c || d || true", "other constant: b = c && d || false"},
		"for range a { continue }":     {"removed statement: for range a {  }"},
		"_ = a - 0x10":                 {"swapped + and -: _ = a + 0x10", "constant off by one: _ = a - 17"},
		"defer f()":                    {"removed statement: _ = func() { defer f() }"},
		"a++":                          {"removed statement: _ = func() { a++ }"},
		"b := 1.5":                     nil,
		"switch { case a >= b: ch<-a}": {"boundary: switch { case a > b: ch<-a}", "removed statement: switch { case a >= b: _ = func() { ch<-a }}"},
	} {
		const head = "package p\n\nconst one = 1\n\nfunc g() {\n"
		mutants, err := mutantsOf("p.go", []byte(head+body+"\n}\n"))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range mutants {
			changed := strings.TrimSuffix(strings.TrimPrefix(string(m.content()), head), "\n}\n")
			got = append(got, m.kind+": "+changed)
			if m.line != 6 || m.String() != "p.go:6: "+m.kind+"\n-"+body+"\n+"+changed {
				t.Errorf("%s: %s", body, m)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s:\ngot  %q\nwant %q", body, got, want)
		}
	}
}

func TestParseDefects_ApplyToSource(t *testing.T) {
	all, err := parseDefects(defectList)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 25 {
		t.Errorf("%d defects", len(all))
	}
	names := map[string]bool{}
	for _, d := range all {
		if names[d.name] || d.breaks == "" || len(d.packages) == 0 || d.old == d.changed {
			t.Errorf("%+v", d)
		}
		names[d.name] = true
		if _, err := d.mutant("../.."); err != nil {
			t.Error(err)
		}
	}
	if _, err := parseDefects("a: b\nfile.go ./p\n"); err == nil {
		t.Error("a defect without lines has no error")
	}
}

func TestCoverage_CoversCaseByItsBody(t *testing.T) {
	covered, err := readCoverage("mode: set\nm/p.go:3.10,5.9 2 1\nm/p.go:6.20,7.9 1 0\nm/p.go:8.20,9.9 1 1\n")
	if err != nil {
		t.Fatal(err)
	}
	for place, want := range map[[2]int]bool{{3, 12}: true, {5, 8}: true, {6, 8}: false, {6, 20}: false, {8, 8}: true, {9, 9}: false} {
		if got := covered.covers(mutant{file: "/src/p.go", line: place[0], column: place[1]}); got != want {
			t.Errorf("%v: %t", place, got)
		}
	}
	if _, err := readCoverage("p.go 3\n"); err == nil {
		t.Error("a broken profile has no error")
	}
}

// TestRun_ListsSurvivors runs the mutants of a package whose tests miss one of two boundaries.
func TestRun_ListsSurvivors(t *testing.T) {
	folder := t.TempDir()
	t.Chdir(folder)
	t.Setenv("GOWORK", "off")
	for name, text := range map[string]string{
		"go.mod": "module example.org/p\n\ngo 1.26.0\n",
		"p.go": "package p\n\nfunc IsChild(age int) bool {\n\treturn age >= 0 && age < 18\n}\n\n" +
			"func Unused(a int) int {\n\treturn a + 1\n}\n",
		"p_test.go": "package p\n\nimport \"testing\"\n\nfunc TestIsChild(t *testing.T) {\n" +
			"\tif !IsChild(17) || IsChild(18) {\n\t\tt.Fatal()\n\t}\n}\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	if err := run(t.Context(), &out, []string{"-n", "0", "."}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"example.org/p: 5 mutants on covered lines, 2 on others; the tests take ",
		"p.go:4: boundary\n-\treturn age >= 0 && age < 18\n+\treturn age > 0 && age < 18\n",
		"p.go:4: constant off by one\n-\treturn age >= 0 && age < 18\n+\treturn age >= 1 && age < 18\n",
		"example.org/p: 3 killed, 2 survived, 0 timed out, 0 did not compile\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("want %q in\n%s", want, out.String())
		}
	}
}
