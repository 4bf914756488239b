package discovery

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/transport"
)

// fault breaks the response of /apis.
type fault struct {
	at    int  // the byte
	cut   bool // the connection ends before it
	stall bool // nothing comes from it on
	flip  byte // these of its bits are flipped
}

// faultyPeer serves connections in memory, byte by byte as a test says. Its responses are those of a server with
// aggregated discovery.
type faultyPeer struct {
	api, apis []byte // with status line and headers
	fault     atomic.Pointer[fault]
	open      atomic.Int32 // connections
}

func httpResponse(body string) []byte {
	return fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: %s\r\nETag: \"e1\"\r\nContent-Length: %d\r\n\r\n%s", aggregatedType, len(body), body)
}

func (p *faultyPeer) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	p.open.Add(1)
	go func() {
		defer p.open.Add(-1)
		defer func() { _ = server.Close() }()
		p.serve(server)
	}()
	return client, nil
}

func (p *faultyPeer) serve(conn net.Conn) {
	for requests := bufio.NewReader(conn); ; {
		request, err := http.ReadRequest(requests)
		if err != nil {
			return
		}
		response := p.api
		current := (*fault)(nil)
		if request.URL.Path == "/apis" {
			response = p.apis
			current = p.fault.Load()
		}
		if current == nil {
			_, _ = conn.Write(response)
			continue
		}
		response = slices.Clone(response)
		response[current.at] ^= current.flip
		if current.flip == 0 {
			response = response[:current.at]
		}
		if _, err := conn.Write(response); err != nil || current.cut {
			return
		}
		if current.stall {
			_, _ = requests.Peek(1) // until the client closes the connection
			return
		}
	}
}

// everyByte calls check for a client with a snapshot, whose server has the fault at each byte, and makes sure that
// nothing stays behind and that the next refresh works. It returns the number of cases.
func everyByte(t *testing.T, peer *faultyPeer, faults []fault, check func(t *testing.T, f fault, client *Client, before *Snapshot)) (cases int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		conn, err := transport.New("http://server.example", &http.Client{Transport: &http.Transport{DialContext: peer.dial}}, nil)
		require.NoError(t, err)
		defer conn.Close()
		peer.fault.Store(nil)
		good, err := New(conn, nil).Refresh(t.Context())
		require.NoError(t, err)
		for at := range peer.apis {
			for _, f := range faults {
				f.at = at
				client := New(conn, &Options{Snapshot: good})
				peer.fault.Store(&f)
				check(t, f, client, good)
				conn.Close()
				synctest.Wait()
				require.Zero(t, peer.open.Load(), "%+v: a connection stays", f)
				peer.fault.Store(nil)
				again, err := client.Refresh(t.Context())
				require.NoError(t, err)
				require.True(t, equalGroups(good.Groups, again.Groups), "%+v: the next refresh", f)
				cases++
			}
		}
	})
	return cases
}

var smallDocument = `{"kind":"APIGroupDiscoveryList","items":[` + smallItem("alpha.example") + "," + smallItem("bravo.example") + "]}"

func smallItem(group string) string {
	return `{"metadata":{"name":"` + group + `"},"versions":[{"version":"v1","freshness":"Current","resources":[{"resource":"things",
		"scope":"Cluster","responseKind":{"kind":"Thing"},"verbs":["get"],"categories":["all"],"subresources":[{"subresource":"scale"}]}]}]}`
}

func newFaultyPeer() *faultyPeer {
	return &faultyPeer{api: httpResponse(scripted.Index(pods, true)), apis: httpResponse(smallDocument)}
}

// TestRefresh_CutAtEveryByte expects an error and the snapshot of before.
func TestRefresh_CutAtEveryByte(t *testing.T) {
	cases := everyByte(t, newFaultyPeer(), []fault{{cut: true}}, func(t *testing.T, f fault, client *Client, before *Snapshot) {
		_, err := client.Refresh(t.Context())
		require.Error(t, err, "%+v", f)
		require.Same(t, before, client.Latest())
	})
	t.Logf("%d cases", cases)
}

// TestRefresh_StallAtEveryByte expects the caller's deadline to end the refresh, and the snapshot of before.
func TestRefresh_StallAtEveryByte(t *testing.T) {
	cases := everyByte(t, newFaultyPeer(), []fault{{stall: true}}, func(t *testing.T, f fault, client *Client, before *Snapshot) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		_, err := client.Refresh(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded, "%+v", f)
		require.Equal(t, time.Minute, time.Since(began), "%+v", f)
		require.Same(t, before, client.Latest())
	})
	t.Logf("%d cases", cases)
}

// TestRefresh_CorruptAtEveryByte expects an error and the snapshot of before, or one in which only the group is damaged
// that holds the byte.
func TestRefresh_CorruptAtEveryByte(t *testing.T) {
	log.SetOutput(io.Discard) // net/http reports responses that are longer than their Content-Length
	t.Cleanup(func() { log.SetOutput(os.Stderr) })
	peer := newFaultyPeer()
	body := len(peer.apis) - len(smallDocument)
	failed := 0
	flips := []fault{{flip: 1}, {flip: 0x20}}
	cases := everyByte(t, peer, flips, func(t *testing.T, f fault, client *Client, before *Snapshot) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		snapshot, err := client.Refresh(ctx)
		require.LessOrEqual(t, time.Since(began), time.Minute)
		if err != nil {
			failed++
			require.Same(t, before, client.Latest(), "%+v", f)
			require.True(t, time.Since(began) == 0 || errors.Is(err, context.DeadlineExceeded), "%+v: %v", f, err)
			return
		}
		damaged := ""
		if at := f.at - body; at > 0 {
			damaged = damagedGroup(at)
		}
		got := groupsByName(snapshot)
		want := groupsByName(before)
		for name := range want {
			if name != damaged {
				require.Contains(t, got, name, "%+v: %q became %q", f, peer.apis[f.at], peer.apis[f.at]^f.flip)
				require.True(t, equalGroups([]Group{want[name]}, []Group{got[name]}), "%+v: %q: %q", f, name, peer.apis[f.at])
			}
		}
		for _, group := range snapshot.Groups {
			require.NoError(t, validateGroups([]Group{group}))
		}
	})
	assert.Greater(t, failed, cases/10)
	t.Logf("%d cases, of which %d are errors", cases, failed)
}

// damagedGroup returns the group of the document's item that holds a byte.
func damagedGroup(at int) string {
	for _, name := range []string{"bravo.example", "alpha.example"} {
		if start := strings.Index(smallDocument, `{"metadata":{"name":"`+name); at >= start {
			return name
		}
	}
	return ""
}
