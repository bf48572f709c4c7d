#!/bin/sh
# Plays docker for tests: every image has the servers of this machine, except that
# absent:1 is in no registry and empty:1 has no server. A container is a process that is
# not our child, so that it outlives us as it outlives docker's client.
set -u
state=${0%/*}
echo "$*" >>"$state/commands"

case $1 in
image) # inspect IMAGE
	[ -e "$state/image-$3" ] || exit 1
	;;
pull) # IMAGE
	if [ "$2" = absent:1 ]; then
		echo "manifest for $2 not found" >&2
		exit 1
	fi
	echo "pulling $2"
	: >"$state/image-$2"
	;;
container) # inspect --format NAME
	cat "$state/container-$4"
	;;
rm) # --force --volumes NAME
	[ -e "$state/container-$4" ] || exit 1
	kill -9 "$(cat "$state/container-$4")"
	rm -f "$state/container-$4"
	;;
run)
	shift
	while :; do
		case $1 in
		--name=*) name=${1#*=} ;;
		--user=*) user=${1#*=} ;;
		--workdir=*) dir=${1#*=} ;;
		--entrypoint=*) program=${1#*=} ;;
		-*) ;;
		*) break ;;
		esac
		shift
	done
	[ -e "$state/image-$1" ] || exit 125
	for more in /usr/local/sbin /usr/local/bin /usr/sbin /usr/lib/postgresql/*/bin /usr/pgsql-*/bin; do
		PATH=$PATH:$more
	done
	if [ "$1" = empty:1 ]; then
		[ "$program" = sh ] || exit 127
		program=/bin/sh PATH=/nowhere
	fi
	shift
	as=
	if [ "$(/usr/bin/id -u)" = 0 ]; then
		as="/usr/bin/setpriv --reuid=${user%:*} --regid=${user#*:} --clear-groups"
	fi
	cd "$dir" || exit 126
	exec 3<&0 # the shell gives a background process an empty input
	/usr/bin/setsid $as "$program" "$@" <&3 3<&- &
	echo $! >"$state/container-$name"
	wait $!
	status=$?
	/bin/rm -f "$state/container-$name"
	exit $status
	;;
*)
	exit 1
	;;
esac
