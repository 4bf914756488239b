// Package stream talks with what runs in pods: it runs commands in them and attaches to them, reads their logs, copies
// files in and out, and connects to their ports.
//
//	pods, err := client.Resource(ctx, "pods")
//	err = stream.Exec(ctx, pods.In("shop"), "web-0", &stream.ExecOptions{Command: []string{"ls"}, Stdout: os.Stdout})
//
// A handle of the package dynamic is a [Target]; so is all that gives paths and a connection. Every call ends when its
// ctx does, and then returns ctx's error; only what is open when a call returns, such as a connection, outlives it.
package stream
