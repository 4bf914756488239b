package difftest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestShrink_LeavesWhatFails(t *testing.T) {
	for name, test := range map[string]struct {
		total  int
		needed []int
	}{
		"pair far apart": {100, []int{3, 97}},
		"neighbours":     {101, []int{50, 51}},
		"first":          {64, []int{1}},
		"last":           {64, []int{64}},
		"all":            {4, []int{1, 2, 3, 4}},
		"only one":       {1, []int{1}},
	} {
		t.Run(name, func(t *testing.T) {
			fails := func(operations []Operation) bool {
				return !slices.ContainsFunc(test.needed, func(id int) bool { return !slices.Contains(ids(operations), id) })
			}
			assert.Equal(t, test.needed, ids(shrink(numbered(test.total), 1000, fails)))
		})
	}
}

func TestShrink_StopsAtLimit(t *testing.T) {
	plays := 0
	left := shrink(numbered(1000), 7, func(operations []Operation) bool {
		plays++
		return slices.Contains(ids(operations), 500)
	})
	assert.Equal(t, 7, plays)
	assert.Contains(t, ids(left), 500)
	assert.Less(t, len(left), 1000)
}

func numbered(count int) []Operation {
	operations := make([]Operation, count)
	for i := range operations {
		operations[i].ID = i + 1
	}
	return operations
}

func ids(operations []Operation) []int {
	var all []int
	for _, op := range operations {
		all = append(all, op.ID)
	}
	return all
}

// TestResult_ShrinkPrintsPair plays a block on two scripted servers, one of which returns a different object after a certain write.
func TestResult_ShrinkPrintsPair(t *testing.T) {
	good := scriptedServer(t, false)
	faulty := scriptedServer(t, true)
	thing := &kind{class: "custom", definition: "things.shrink.example", group: "shrink.example", version: "v1", plural: "things", name: "Thing", namespaced: true}
	definitions := &pool{definitions: map[string]string{thing.definition: `{}`}}
	b := &block{kinds: []*kind{thing}, operations: scriptedBlock(thing)}
	b.differences = newLab(t, good, faulty, definitions, b.kinds).play(t, b.kinds, b.operations, true)
	require.NotEmpty(t, b.differences)
	result := &Result{failing: []*block{b}, pool: definitions}

	text := result.Shrink(t, good, faulty, Config{Permitted: "other/permitted.txt"}, 200)
	assert.Contains(t, text, `[]string{"things.shrink.example"}`)
	assert.Contains(t, text, `"other/permitted.txt"`)
	want := slices.DeleteFunc(scriptedBlock(thing), func(op Operation) bool { return op.ID != 30 && op.ID != 70 })
	assert.Equal(t, want, printedOperations(t, text))
}

// scriptedBlock returns operations: number 30 is the write, and number 70 is the first read after it.
func scriptedBlock(k *kind) []Operation {
	operations := numbered(90)
	for i := range operations {
		op := &operations[i]
		op.Class = k.class
		op.Verb = "get"
		op.Kind = k.name
		op.Fault = faultNone
		op.Method = http.MethodGet
		op.Path = k.collection(k.version) + "/object-" + strconv.Itoa(i%3)
		if i%4 == 0 {
			op.Verb = "patch-merge"
			op.Method = http.MethodPatch
			op.ContentType = mergePatch
			op.Body = fmt.Sprintf(`{"spec":{"size":%d}}`, i)
		}
	}
	operations[29] = Operation{
		ID: 30, Class: k.class, Verb: "patch-merge", Kind: k.name, Fault: faultNone, Writer: "bob", Method: http.MethodPatch,
		Path: k.collection(k.version) + "/object-7", ContentType: mergePatch, Body: `{"spec":{"mark":"it's a \"quoted\" ` + "`text`" + `"}}`,
	}
	for _, i := range []int{9, 69, 79} {
		operations[i].Verb = "get"
		operations[i].Method = http.MethodGet
		operations[i].ContentType = ""
		operations[i].Body = ""
		operations[i].Path = k.collection(k.version) + "/object-7"
		operations[i].OwnView = true
	}
	operations[49] = Operation{ID: 50, Class: "all", Verb: "compact", Fault: faultNone, Method: methodCompact}
	operations[50] = Operation{ID: 51, Class: "all", Verb: "restart", Fault: faultNone, Method: methodRestart}
	return operations
}

// scriptedServer responds to all requests with the same object. With a fault, it forgets a mark that was written in the same namespace.
func scriptedServer(t *testing.T, faulty bool) *Server {
	t.Helper()
	var mu sync.Mutex
	marked := map[string]bool{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		w.Header().Set("Content-Type", jsonType)
		namespace, name, _ := strings.Cut(r.URL.Path, "/things/")
		switch {
		case r.URL.Query().Has("watch"):
			fmt.Fprintln(w, `{"type":"BOOKMARK","object":{"metadata":{"annotations":{"k8s.io/initial-events-end":"true"}}}}`)
		case r.Method == http.MethodPost:
			w.WriteHeader(http.StatusCreated)
			fmt.Fprintln(w, `{"kind":"Namespace","metadata":{"name":"new","resourceVersion":"1"}}`)
		case r.Method == http.MethodPatch && r.UserAgent() == "bob":
			marked[namespace] = true
			fallthrough
		default:
			fmt.Fprintf(w, `{"kind":"Thing","metadata":{"name":%q},"marked":%t}`, name, name == "object-7" && marked[namespace] && (r.Method != http.MethodGet || !faulty))
		}
	}))
	t.Cleanup(server.Close)
	transport, isHTTP := server.Client().Transport.(*http.Transport)
	require.True(t, isHTTP)
	nothing := func(testing.TB) {}
	return &Server{Restart: nothing, Compact: nothing, url: server.URL, client: server.Client(), transport: transport}
}

// printedOperations parses a printed test and returns the operations in it.
func printedOperations(t *testing.T, text string) (operations []Operation) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "shrunk_test.go", "package difftest_test\n\n"+text, parser.AllErrors)
	require.NoError(t, err, text)
	ast.Inspect(file, func(n ast.Node) bool {
		list, isLiteral := n.(*ast.CompositeLit)
		if !isLiteral {
			return true
		}
		if array, isArray := list.Type.(*ast.ArrayType); !isArray || fmt.Sprint(array.Elt) != "&{difftest Operation}" {
			return true
		}
		for _, element := range list.Elts {
			var op Operation
			for _, field := range element.(*ast.CompositeLit).Elts {
				setField(t, reflect.ValueOf(&op).Elem(), field.(*ast.KeyValueExpr))
			}
			operations = append(operations, op)
		}
		return false
	})
	return operations
}

func setField(t *testing.T, op reflect.Value, pair *ast.KeyValueExpr) {
	t.Helper()
	field := op.FieldByName(pair.Key.(*ast.Ident).Name)
	require.True(t, field.IsValid(), "%v", pair.Key)
	switch value := pair.Value.(type) {
	case *ast.Ident:
		field.SetBool(value.Name == "true")
	case *ast.BasicLit:
		if field.Kind() == reflect.Int {
			number, err := strconv.Atoi(value.Value)
			require.NoError(t, err)
			field.SetInt(int64(number))
			return
		}
		unquoted, err := strconv.Unquote(value.Value)
		require.NoError(t, err)
		field.SetString(unquoted)
	default:
		t.Fatalf("unexpected %T", value)
	}
}
