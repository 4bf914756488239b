//go:build unix

package cluster

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestRelay_Delay delays the responses of a server that sends back what it receives.
func TestRelay_Delay(t *testing.T) {
	listener, err := net.Listen("tcp", net.JoinHostPort(loopback, "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	received := make(chan string, 10)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			for scanner := bufio.NewScanner(conn); scanner.Scan(); {
				received <- scanner.Text()
				fmt.Fprintln(conn, scanner.Text())
			}
			_ = conn.Close()
		}
	}()
	r, err := newRelay(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	closeRelay := sync.OnceFunc(r.close)
	defer closeRelay()
	conn, err := net.Dial("tcp", strings.TrimPrefix(r.url(), "https://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	responses := bufio.NewReader(conn)
	exchange := func(line string) {
		t.Helper()
		fmt.Fprintln(conn, line)
		if got := <-received; got != line {
			t.Errorf("the server received %q, want %q", got, line)
		}
	}
	expect := func(line string) {
		t.Helper()
		if got, err := responses.ReadString('\n'); err != nil || got != line+"\n" {
			t.Errorf("response %q, %v, want %q", got, err, line)
		}
	}
	exchange("at once")
	expect("at once")

	r.setDelay(time.Hour)
	exchange("first")
	exchange("second")
	if err := conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if got, err := responses.ReadString('\n'); err == nil {
		t.Errorf("response %q within its delay", got)
	}
	if err := conn.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	r.setDelay(0)
	expect("first")
	expect("second")

	r.setDelay(time.Hour)
	exchange("last")
	closeRelay()
	if got, err := responses.ReadString('\n'); err == nil {
		t.Errorf("response %q after close", got)
	}
}
