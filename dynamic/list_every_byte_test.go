package dynamic_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

// damage is a fault at one byte of the responses of a scripted server, counted over all pages.
type damage struct {
	kind        damageKind
	at          int
	replacement byte
}

type damageKind int

const (
	intact  damageKind = iota
	cut                // the response ends before the byte
	reset              // the connection breaks before the byte
	stalled            // the byte never arrives
	corrupt            // the byte is replaced
)

// listServer serves the pages of a list, one of which is damaged. The damage is in the request's context, so that cases
// share a handle.
type listServer struct {
	pages    [][]byte
	protobuf bool
	bodies   *atomic.Int64
}

// pageTokens are the continue tokens. No damage turns one into another.
var pageTokens = []string{"", "second", "another"}

type damageKey struct{}

func (s *listServer) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Path == "/api" || r.URL.Path == "/apis" {
		w := httptest.NewRecorder()
		scripted.New(resources).ServeHTTP(w, r)
		return w.Result(), nil
	}
	done, _ := r.Context().Value(damageKey{}).(damage)
	status, body := s.respond(r.URL.Query().Get("continue"), done)
	s.bodies.Add(1)
	contentType := "application/json"
	if s.protobuf && status == http.StatusOK {
		contentType = protobufType
	}
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {contentType}}, Body: body.of(r.Context(), s.bodies), Request: r}, nil
}

// respond returns the page of a token, with the damage.
func (s *listServer) respond(token string, done damage) (int, damagedBody) {
	before := 0
	for i, page := range s.pages {
		if token == pageTokens[i] {
			done.at -= before
			if done.at < 0 || done.at > len(page) {
				done = damage{}
			}
			return http.StatusOK, damagedBody{damage: done, rest: page}
		}
		before += len(page) + 1 // the byte after each page, too
	}
	return http.StatusBadRequest, damagedBody{rest: []byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":400,"reason":"BadRequest","message":"no such token"}`)}
}

// damagedBody is a body of which one byte is damaged.
type damagedBody struct {
	damage
	rest   []byte
	read   int
	ctx    context.Context
	open   *atomic.Int64
	closed bool
}

func (b damagedBody) of(ctx context.Context, open *atomic.Int64) io.ReadCloser {
	b.ctx = ctx
	b.open = open
	return &b
}

func (b *damagedBody) Read(p []byte) (int, error) {
	text := b.whole()
	if b.read == len(text) {
		if b.kind == reset {
			return 0, syscall.ECONNRESET
		}
		if b.kind == stalled {
			<-b.ctx.Done()
			return 0, b.ctx.Err()
		}
		return 0, io.EOF
	}
	n := copy(p, text[b.read:])
	b.read += n
	return n, nil
}

// whole returns the text of the body.
func (b *damagedBody) whole() []byte {
	switch {
	case b.kind == corrupt && b.at < len(b.rest):
		text := append([]byte(nil), b.rest...)
		text[b.at] = b.replacement
		return text
	case b.kind == corrupt:
		return append(b.rest[:len(b.rest):len(b.rest)], b.replacement)
	case b.kind == intact:
		return b.rest
	default:
		return b.rest[:b.at]
	}
}

func (b *damagedBody) Close() error {
	if !b.closed {
		b.closed = true
		b.open.Add(-1)
	}
	return nil
}

// twenty is a list of twenty objects in so many pages.
func twenty(pages int) [][]byte {
	var all [][]byte
	for page := range pages {
		var items []string
		for n := page * 20 / pages; n < (page+1)*20/pages; n++ {
			more := ""
			if n%7 == 0 {
				more = `,"a":["é\n",null]`
			}
			items = append(items, fmt.Sprintf(`{"metadata":{"name":"p%02d"}%s}`, n, more))
		}
		next := ""
		if page+1 < pages {
			next = fmt.Sprintf(`"continue":%q,`, pageTokens[page+1])
		}
		all = append(all, []byte(`{"kind":"PodList","apiVersion":"v1","metadata":{`+next+`"resourceVersion":"9"},"items":[`+strings.Join(items, ",")+`]}`))
	}
	return all
}

func twentyRows() []byte {
	var rows []string
	for n := range 20 {
		rows = append(rows, fmt.Sprintf(`{"cells":["p%02d",%d],"object":{"kind":"Pod"}}`, n, n))
	}
	return []byte(`{"kind":"Table","apiVersion":"meta.k8s.io/v1","columnDefinitions":[{"name":"Name","type":"string"}],"rows":[` + strings.Join(rows, ",") + `]}`)
}

// expected returns the correct result of a list, by encoding/json: the objects as JSON, and whether it then fails.
func (s *listServer) expected(done damage) (want []string, fails bool) {
	for token := ""; ; {
		status, body := s.respond(token, done)
		var list struct {
			Kind, APIVersion any
			Metadata         any
			Items            json.RawMessage
		}
		var fields map[string]json.RawMessage
		text := body.whole()
		if status != http.StatusOK || json.Unmarshal(text, &fields) != nil {
			return want, true
		}
		_ = json.Unmarshal(fields["kind"], &list.Kind)
		_ = json.Unmarshal(fields["apiVersion"], &list.APIVersion)
		_ = json.Unmarshal(fields["metadata"], &list.Metadata)
		kind, _ := list.Kind.(string)
		apiVersion, _ := list.APIVersion.(string)
		itemsText, hasItems := fields["items"]
		if kind == "" || strings.Count(apiVersion, "/") > 1 || !hasItems && !strings.HasSuffix(kind, "List") {
			return want, true
		}
		var items []any
		if hasItems && json.Unmarshal(itemsText, &items) != nil {
			return want, true
		}
		for _, item := range items {
			fields, isObject := item.(map[string]any)
			if !isObject && item != nil {
				return want, true
			}
			if fields == nil {
				fields = map[string]any{}
			}
			if fields["kind"] == nil && fields["apiVersion"] == nil {
				fields["kind"] = strings.TrimSuffix(kind, "List")
				fields["apiVersion"] = apiVersion
			}
			text, _ := json.Marshal(fields)
			want = append(want, string(text))
		}
		metadata, _ := list.Metadata.(map[string]any)
		if token, _ = metadata["continue"].(string); token == "" {
			return want, false
		}
	}
}

// listForm reads a list with one of the calls that do, to its end, and returns its objects as JSON.
type listForm struct {
	pages    int
	whole    bool // all objects or an error, never both
	loose    bool // only the validity of the JSON is compared with encoding/json, not the objects
	table    bool
	protobuf bool
	read     func(ctx context.Context, pods *dynamic.Resource) ([]string, error)
}

func readList[T any](all iter.Seq2[*T, error], of func(*T) (*unstructured.Object, error)) (read []string, err error) {
	for item, err := range all {
		if err != nil {
			return read, err
		}
		obj, err := of(item)
		if err != nil {
			return read, err
		}
		text, err := unstructured.Encode(obj)
		if err != nil {
			return read, err
		}
		read = append(read, string(text))
	}
	return read, nil
}

func itself(obj *unstructured.Object) (*unstructured.Object, error) { return obj, nil }

func listForms() map[string]listForm {
	objects := func(limit int64) func(context.Context, *dynamic.Resource) ([]string, error) {
		return func(ctx context.Context, pods *dynamic.Resource) ([]string, error) {
			return readList(pods.List(ctx, &metav1.ListOptions{Limit: limit}), itself)
		}
	}
	lazies := func(ctx context.Context, pods *dynamic.Resource) ([]string, error) {
		return readList(dynamic.As[unstructured.Lazy](pods).List(ctx, nil), (*unstructured.Lazy).Object)
	}
	page := func(ctx context.Context, pods *dynamic.Resource) ([]string, error) {
		page, err := pods.ListPage(ctx, nil)
		if err != nil {
			return nil, err
		}
		return readList(func(yield func(*unstructured.Object, error) bool) {
			for _, obj := range page.Items {
				if !yield(obj, nil) {
					return
				}
			}
		}, itself)
	}
	typed := func(ctx context.Context, pods *dynamic.Resource) (names []string, err error) {
		for one, err := range dynamic.As[guest](pods).List(ctx, nil) {
			if err != nil {
				return names, err
			}
			names = append(names, one.Name)
		}
		return names, nil
	}
	table := func(ctx context.Context, pods *dynamic.Resource) (cells []string, err error) {
		page, err := pods.Tables("").ListPage(ctx, nil)
		if err != nil {
			return nil, err
		}
		for _, row := range page.Items {
			cells = append(cells, fmt.Sprint(row.Cells...))
		}
		return cells, nil
	}
	return map[string]listForm{
		"objects":             {pages: 1, read: objects(500)},
		"objects, prefetched": {pages: 3, read: objects(7)},
		"lazy, prefetched":    {pages: 3, read: lazies},
		"page":                {pages: 1, whole: true, read: page},
		"typed":               {pages: 1, loose: true, read: typed},
		"table":               {pages: 1, whole: true, loose: true, table: true, read: table},
	}
}

const everyByteDeadline = 7 * time.Second

// TestList_EveryByteDamaged cuts, resets, stalls and corrupts a list of twenty objects at every byte, in every form.
func TestList_EveryByteDamaged(t *testing.T) {
	t.Parallel()
	forms := listForms()
	for name, form := range listForms() {
		if !form.table {
			form.protobuf = true
			form.loose = true
			forms[name+", protobuf"] = form
		}
	}
	for name, form := range forms {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cases := 0
			server := &listServer{pages: twenty(form.pages), bodies: &atomic.Int64{}}
			if form.table {
				server.pages = [][]byte{twentyRows()}
			}
			if form.protobuf {
				server.protobuf = true
				for i, page := range server.pages {
					server.pages[i] = []byte(protobufOf(t, string(page)))
				}
			}
			conn, err := transport.New("http://bubble", &http.Client{Transport: server}, &transport.Options{Namespace: "home", Protobuf: form.protobuf})
			require.NoError(t, err)
			client := dynamic.New(conn, nil)
			t.Cleanup(client.Close)
			pods := resource(t, client, "pods")
			length := form.pages - 1
			for _, page := range server.pages {
				length += len(page)
			}
			all, err := form.read(t.Context(), pods)
			require.NoError(t, err)
			require.Len(t, all, 20)
			if !form.loose {
				want, fails := server.expected(damage{})
				require.False(t, fails)
				require.Equal(t, want, all)
			}
			synctest.Test(t, func(t *testing.T) {
				for at := range length + 1 {
					for _, done := range damages(server, at) {
						form.check(t, server, pods, done, all)
						cases++
					}
				}
			})
			t.Logf("%d cases", cases)
		})
	}
}

// damages returns the faults at one byte.
func damages(server *listServer, at int) []damage {
	is := byte(' ')
	before := 0
	for _, page := range server.pages {
		if n := at - before; n >= 0 && n < len(page) {
			is = page[n]
		}
		before += len(page) + 1
	}
	return []damage{
		{kind: cut, at: at}, {kind: reset, at: at}, {kind: stalled, at: at},
		{kind: corrupt, at: at, replacement: is ^ 1}, {kind: corrupt, at: at, replacement: [...]byte{'"', is ^ 0x80, is ^ 0x20, ','}[at%4]},
	}
}

func (f listForm) check(t *testing.T, server *listServer, pods *dynamic.Resource, done damage, all []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), damageKey{}, done), everyByteDeadline)
	defer cancel()
	began := time.Now()
	got, err := f.read(ctx, pods)
	took := time.Since(began)
	synctest.Wait()
	want := all
	fails := done.kind == stalled || done.kind == reset || done.kind == cut && !server.endsAt(done.at)
	switch {
	case done.kind == corrupt && f.protobuf:
		want = got
		fails = err != nil
	case done.kind == corrupt && f.loose:
		_, body := server.respond("", done)
		want = got
		fails = err != nil || !json.Valid(body.whole())
	case done.kind == corrupt:
		want, fails = server.expected(done)
	}
	problem := ""
	switch {
	case server.bodies.Load() != 0:
		problem = fmt.Sprintf("%d bodies are open", server.bodies.Load())
	case fails != (err != nil):
		problem = "right and wrong"
	case f.whole && err != nil && got != nil:
		problem = "objects and an error"
	case err == nil && !slices.Equal(want, got):
		problem = "other objects"
	case err != nil && !isPrefix(got, want) && !isPrefix(want, got):
		problem = "other objects before the error"
	case done.kind == stalled && (!errors.Is(err, context.DeadlineExceeded) || took != everyByteDeadline):
		problem = "not ended by the deadline"
	case done.kind != stalled && took != 0:
		problem = "took time"
	case done.kind == reset && !errors.Is(err, syscall.ECONNRESET):
		problem = "not the connection's error"
	case done.kind == cut && fails && !errors.Is(err, io.ErrUnexpectedEOF):
		problem = "not an early end"
	}
	if problem != "" {
		t.Fatalf("%s: %+v: got %d objects, %v after %s; want %d, error %v", problem, done, len(got), err, took, len(want), fails)
	}
}

// endsAt reports whether a page ends at a byte.
func (s *listServer) endsAt(at int) bool {
	for _, page := range s.pages {
		if at == len(page) {
			return true
		}
		if s.protobuf && len(page)-4 <= at && at < len(page) {
			return at%2 == len(page)%2 // behind the list, with or without the envelope's two empty fields
		}
		at -= len(page) + 1
	}
	return false
}

func isPrefix(some, all []string) bool {
	return len(some) <= len(all) && slices.Equal(some, all[:len(some)])
}
