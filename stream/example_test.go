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
	"os"
	"path/filepath"
	"strings"

	"github.com/gorilla/websocket"

	"github.com/anykind/anykind/stream"
	"github.com/anykind/anykind/transport"
)

// twoPods is a list of pods with a container and a proxy each.
const twoPods = `{"items":[
	{"metadata":{"namespace":"shop","name":"web-0"},"status":{"containerStatuses":[
		{"name":"app","state":{"running":{}}},{"name":"proxy","state":{"running":{}}}]}},
	{"metadata":{"namespace":"shop","name":"web-1"},"status":{"containerStatuses":[{"name":"app","state":{"running":{}}}]}}]}`

// scripted is a server whose one pod knows the commands that the examples run.
func scripted() (web pods, stop func()) {
	archives := make(chan []string, 1) // the file that was copied into the pod
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/pods") {
			_, _ = io.WriteString(w, twoPods)
			return
		}
		if strings.HasSuffix(r.URL.Path, "/web-1/log") {
			reject(w, http.StatusForbidden, "Forbidden", "you may not read the logs of web-1")
			return
		}
		if r.Header.Get("Upgrade") == "" {
			_, _ = io.WriteString(w, "GET /\nGET /favicon.ico\n")
			return
		}
		upgrader := websocket.Upgrader{Subprotocols: []string{v5}}
		ws, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer func() { _ = ws.Close() }()
		if strings.HasSuffix(r.URL.Path, "/attach") {
			for _, text := range receive(ws) {
				if text[0] == 0 {
					send(ws, "\x01> "+text[1:])
				}
			}
			send(ws, exit3)
			closeNormally(ws)
			return
		}
		switch command := r.URL.Query()["command"]; command[0] {
		case "cat":
			for _, text := range receive(ws) {
				if text[0] == 0 {
					send(ws, "\x01"+text[1:])
				}
			}
			send(ws, success)
		case "sh": // unpacks an archive
			send(ws, "\x01file\n")
			received := receive(ws)
			archives <- received[:len(received)-1]
			send(ws, success)
		case "tar":
			for _, text := range <-archives {
				send(ws, "\x01"+text[1:])
			}
			send(ws, success)
		case "ls":
			send(ws, "\x02ls: "+command[1]+": No such file or directory\n", exit3)
		}
		closeNormally(ws)
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

// The streams of the container's own process: here an interpreter, which ends with its input.
func ExampleAttach() {
	ctx := context.Background()
	pods, stop := scripted()
	defer stop()

	err := stream.Attach(ctx, pods, "web-0", &stream.AttachOptions{
		Container: "app", Stdin: strings.NewReader("1 + 1\n"), Stdout: os.Stdout, // Stdin needs stdin: true in the container's spec
	})
	var exited *stream.ExitError
	if errors.As(err, &exited) {
		fmt.Println("the process ended with", exited.Code)
	}
	// Output:
	// > 1 + 1
	// the process ended with 3
}

func ExampleCopyTo() {
	ctx := context.Background()
	pods, stop := scripted()
	defer stop()
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	local := filepath.Join(dir, "price.txt")
	if err := os.WriteFile(local, []byte("3\n"), 0o600); err != nil {
		log.Fatal(err)
	}

	err = stream.CopyTo(ctx, pods, "web-0", local, "prices/", nil)
	fmt.Println(err) // the path is the copy's name, not a folder for it
	err = stream.CopyTo(ctx, pods, "web-0", local, "prices/apple.txt", &stream.CopyOptions{OnProgress: func(p stream.CopyProgress) {
		fmt.Println("sent", p.Done, "of", p.Size)
	}})
	if err != nil {
		log.Fatal(err)
	}
	if err := stream.CopyFrom(ctx, pods, "web-0", "prices/apple.txt", filepath.Join(dir, "copy.txt"), nil); err != nil {
		log.Fatal(err)
	}
	copied, err := os.ReadFile(filepath.Join(dir, "copy.txt"))
	fmt.Printf("%s%v\n", copied, err)
	// Output:
	// copy into pod "web-0": the path "prices/" must be the copy's own: give it a name at its end, such as prices/price.txt
	// sent 0 of 2
	// sent 2 of 2
	// 3
	// <nil>
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

func ExampleLogLines() {
	ctx := context.Background()
	pods, stop := scripted()
	defer stop()

	opts := &stream.LogOptions{
		Selector: "app=web", // Follow: true also reads pods that are created later
		Filter:   func(s stream.LogSource) bool { return s.Container != "proxy" },
		OnStart:  func(s stream.LogSource) { fmt.Println("+", s.Pod, s.Container) },
		OnEnd:    func(s stream.LogSource, reason string) { fmt.Println("-", s.Pod, s.Container, reason) },
		OnError:  func(_ stream.LogSource, err error) { fmt.Println(err) },
	}
	for line, err := range stream.LogLines(ctx, pods, opts) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(line)
	}
	// Output:
	// + web-0 app
	// shop/web-0/app: GET /
	// shop/web-0/app: GET /favicon.ico
	// - web-0 app Complete
	// + web-1 app
	// pod "web-1", container "app": you may not read the logs of web-1
	// - web-1 app Failed
}
