// Package stream runs commands in pods, attaches to them, reads their logs, copies files in and out, and connects to their ports.
//
//	pods, err := client.Resource(ctx, "pods")
//	if err != nil {
//		return err
//	}
//	web := pods.Namespace("shop")
//	output, err := stream.Command(ctx, web, "web-0", "cat", "/etc/hostname").Output()
//	err = stream.Exec(ctx, web, "web-0", &stream.ExecOptions{Command: []string{"ls"}, Stdout: os.Stdout})
//
// [Exec] and [Command] run programs, [Attach] joins a container's main process, [Logs] reads a single log and [LogLines] many
// logs, [CopyTo] and [CopyFrom] copy files, [PortDialer], [DialPort] and [ForwardPort] connect to ports, and [Proxy] sends HTTP
// requests through the API server.
//
// Each takes a [Target], such as a *dynamic.Resource, and the name of a pod, or of a service or workload with pods. Every call
// ends with its ctx, and returns ctx's error; only returned values, such as a connection, outlive the call.
package stream
