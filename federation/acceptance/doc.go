// Package acceptance has no code: its tests hold a coordinator and its sites to
// what is promised of them, as processes of the built program, over sockets.
package acceptance
