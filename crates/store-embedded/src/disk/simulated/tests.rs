//! What the simulated disk promises, and what it does not.

use super::*;

fn read(disk: &SimulatedDisk, name: &str) -> Vec<u8> {
    let file = disk.open(name).unwrap();
    let mut bytes = vec![0; usize::try_from(file.size().unwrap()).unwrap()];
    file.read_at(&mut bytes, 0).unwrap();
    bytes
}

fn disk_with_a_file() -> (SimulatedDisk, Arc<dyn File>) {
    let disk = SimulatedDisk::new(1);
    let file = disk.create("a", 4_096).unwrap();
    disk.sync_names().unwrap();
    (disk, file)
}

#[test]
fn what_was_synced_survives_a_power_cut_and_the_rest_is_up_to_chance() {
    let (disk, file) = disk_with_a_file();
    file.write_at(&[1; 512], 0).unwrap();
    file.sync().unwrap();
    file.write_at(&[2; 1_536], 512).unwrap();
    let mut fates = [0; 3];
    for _ in 0..100 {
        let after = read(&disk.crash(), "a");
        assert_eq!(after[..512], [1; 512]);
        let kept = after[512..2_048].chunks(512).filter(|sector| sector[0] == 2).count();
        assert!(after.chunks(512).all(|sector| sector.iter().all(|byte| *byte == sector[0])));
        fates[usize::from(kept > 0) + usize::from(kept == 3)] += 1;
    }
    assert!(fates.iter().all(|times| *times > 5), "lost, torn and kept all happen: {fates:?}");
    assert_eq!(read(&disk.kill(), "a")[512..2_048], [2; 1_536], "the end of a process loses nothing");
    let killed = disk.kill();
    assert!((0..100).any(|_| read(&killed.crash(), "a")[512] == 0), "and makes nothing durable");
}

#[test]
fn a_name_is_durable_only_once_the_names_are_synced() {
    let (disk, _) = disk_with_a_file();
    disk.create("b", 512).unwrap().sync().unwrap();
    disk.rename("a", "c").unwrap();
    let left = |disk: &SimulatedDisk| disk.crash().list().unwrap().concat();
    let seen: std::collections::BTreeSet<String> = (0..100).map(|_| left(&disk)).collect();
    assert_eq!(seen.iter().map(String::as_str).collect::<Vec<_>>(), ["a", "ab", "bc", "c"]);
    disk.sync_names().unwrap();
    assert!((0..100).all(|_| left(&disk) == "bc"));
}

#[test]
fn a_failed_sync_is_not_made_good_by_the_next_one() {
    let (disk, file) = disk_with_a_file();
    disk.set_lies(Lies { lie_after_failed_sync: true, ..Lies::default() });
    file.write_at(&[7; 512], 0).unwrap();
    disk.fail(&[Call::Sync], 0, Trouble::Eio);
    assert_eq!(file.sync().unwrap_err().raw_os_error(), Some(5));
    file.sync().unwrap();
    assert_eq!(read(&disk, "a")[0], 7, "the cache still has it");
    assert_eq!(read(&disk.crash(), "a")[0], 0, "the disk never had");
}

#[test]
fn the_call_that_was_named_fails_and_a_power_cut_is_for_good() {
    let (disk, file) = disk_with_a_file();
    disk.fail(&[Call::Write], 1, Trouble::Enospc);
    file.write_at(&[1], 0).unwrap();
    assert_eq!(file.write_at(&[2], 0).unwrap_err().raw_os_error(), Some(28));
    assert_eq!((disk.fired(), disk.count(Call::Write)), (Some(Call::Write), 2));
    disk.fail(&Call::ALL, 0, Trouble::PowerCut);
    assert!(disk.list().is_err() && file.sync().is_err() && disk.is_off());
    assert!(disk.crash().list().is_ok());
}

#[test]
fn a_disk_has_room_for_so_much_and_one_owner() {
    let (disk, _) = disk_with_a_file();
    disk.set_capacity(Some(5_000));
    assert_eq!(disk.create("b", 905).unwrap_err().raw_os_error(), Some(28));
    disk.create("b", 904).unwrap();
    let other = disk.clone();
    assert!(disk.lock().unwrap() && !other.lock().unwrap());
    drop(disk);
    assert!(other.lock().unwrap());
}

#[test]
fn a_flipped_bit_is_flipped_for_good() {
    let (disk, file) = disk_with_a_file();
    file.write_at(&[1; 16], 0).unwrap();
    assert!(disk.flip("a", 3, 7) && !disk.flip("a", 4_096, 0) && !disk.flip("b", 0, 0));
    assert_eq!(read(&disk, "a")[..5], [1, 1, 1, 129, 1]);
    assert_eq!(read(&disk.crash(), "a")[3], 129);
}
