// Package portconn is a [net.Conn] whose bytes some carrier moves: a pair of SPDY streams, or the channels of a WebSocket.
//
// A [Conn] holds what has arrived and was not read. Connections that share a tunnel share a [Backlog], because carriers
// know no flow control for single connections: whoever reads from the tunnel asks [Conn.WaitRoom] before each piece. One
// connection may leave 256 KiB unread, and connections that share a tunnel 4 MiB together, plus one piece; beyond that the
// tunnel's reader stops, and TCP stops the peer.
//
// The end of the data is not yet an end: the peer reports on another channel whether its connection ended well. A Conn
// returns io.EOF, unwrapped, only when both have arrived, or when the report is five seconds late.
package portconn
