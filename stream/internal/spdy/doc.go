// Package spdy is the client side of SPDY/3.1 (https://www.chromium.org/spdy/spdy-protocol/spdy-protocol-draft3-1) as
// Kubernetes nodes speak it for port-forwarding. A [Session] carries connections to the ports of one pod over one
// WebSocket. A connection is a [Pair] of streams: its bytes go over the data stream, and over the error stream the node
// reports why it failed.
//
// # Goroutines
//
// A session has two. One reads frames and hands their payload to the pair's [Receiver]. The other is the only writer; it
// alternates between one message of control frames and one message of data, so that neither can starve the other. No
// frame starts a goroutine, and no caller waits for a socket: [Session.Open] and [Pair.Send] wait on channels and give up
// when their context, deadline or connection ends.
//
// # Order
//
//   - Streams get their numbers when they are queued to be opened, and are opened in that order, because numbers must rise.
//     An opening that was not written yet can be withdrawn; it leaves a gap, which the protocol allows.
//   - A FIN or RST_STREAM is written after the data that its pair has queued; other control frames go first.
//   - Each reply to the node is state, not a queue entry: the last ping to answer, the set of streams to reset.
//
// # Flow control
//
// Nodes and API servers do not support WINDOW_UPDATE, so streams have no flow control of their own. A receiver that
// cannot take more stops the reading goroutine, and TCP then stops the node; the receivers of a session decide together
// when that is necessary. The Receiver of a pair that is [Receiver.Behind] marks the session as one that new connections
// should avoid.
//
// # Time-outs
//
// A node that answers pings and then sends nothing at all for 55 seconds ends the session. (That the API server is there
// is for the WebSocket to find out.) A node hands frames to a few workers, and one of these is stuck for good when a
// connection ended in the pod with input that nobody read; whatever uses the same worker then hangs. There is no way to
// know. Therefore a session that has carried a connection gives the next one five seconds to be accepted; after that it
// is retired, which means that it takes no new connections, and the caller opens another session. In a session's first
// connection there is nothing to be stuck, and the node has a minute.
//
// # Bounds on memory
//
// A session holds at most four messages of data of up to 32 KiB, one message of control frames, the state of pairs that
// are open here, and of up to 100 pairs that are closed here and that the node has not ended. A node can add to that
// nothing but 64 refusals of streams that it opened itself, which nodes have no reason to do; more end the session. A
// node that sends more than 1 MiB for closed pairs has its session retired. What is received is held by receivers, within
// their bounds.
package spdy
