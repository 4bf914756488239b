package stream_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/anykind/anykind/stream"
	"github.com/anykind/anykind/transport"
	"github.com/gorilla/websocket"
)

// scripted is a server whose one pod knows the commands that the examples run.
func scripted() (web pods, stop func()) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/exec") {
			_, _ = io.WriteString(w, "GET /\nGET /favicon.ico\n")
			return
		}
		upgrader := websocket.Upgrader{Subprotocols: []string{v5}}
		ws, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer func() { _ = ws.Close() }()
		switch command := r.URL.Query()["command"]; command[0] {
		case "cat":
			for _, text := range hear(ws) {
				if text[0] == 0 {
					say(ws, "\x01"+text[1:])
				}
			}
			say(ws, success)
		case "ls":
			say(ws, "\x02ls: "+command[1]+": No such file or directory\n", exit3)
		}
		goodbye(ws)
	}))
	conn, err := transport.New(server.URL, nil, nil)
	if err != nil {
		log.Fatal(err)
	}
	return pods{conn}, func() {
		conn.Close()
		server.Close()
	}
}

func ExampleCmd() {
	ctx := context.Background()
	pods, stop := scripted() // with a real server: pods, err := client.Resource(ctx, "pods")
	defer stop()

	cmd := stream.Command(ctx, pods, "web-0", "cat")
	cmd.Stdin = strings.NewReader("hello, pod")
	out, err := cmd.Output()
	fmt.Printf("%s %v\n", out, err)

	_, err = stream.Command(ctx, pods, "web-0", "ls", "/none").Output()
	var exited *stream.ExitError
	if errors.As(err, &exited) {
		fmt.Printf("%d: %s", exited.Code, exited.Stderr)
	}
	// Output:
	// hello, pod <nil>
	// 3: ls: /none: No such file or directory
}

func ExampleExec() {
	ctx := context.Background()
	pods, stop := scripted()
	defer stop()

	var stderr bytes.Buffer
	err := stream.Exec(ctx, pods, "web-0", &stream.ExecOptions{Command: []string{"ls", "/none"}, Stderr: &stderr})
	fmt.Print(err, "\n", stderr.String())
	// Output:
	// the command ended with exit code 3
	// ls: /none: No such file or directory
}

func ExampleLogs() {
	ctx := context.Background()
	pods, stop := scripted()
	defer stop()

	lines, err := stream.Logs(ctx, pods, "web-0", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer lines.Close()
	text, err := io.ReadAll(lines)
	fmt.Printf("%s%v\n", text, err)
	// Output:
	// GET /
	// GET /favicon.ico
	// <nil>
}
